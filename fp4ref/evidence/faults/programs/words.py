"""words: one warp writes a word twice, another reads it twice and stores both."""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from fp4ref.evidence.faults.small_program import Argument, Launch
from fp4ref.hardware import gmem, named_barrier, smem
from fp4ref.hardware.machine import Machine
from fp4ref.hardware.sm import Blocked, Cta, Role, Warp

LAUNCH = Launch(warps=2)


def arguments(machine: Machine) -> tuple[Argument, ...]:
    """Return the address of two words."""
    return (machine.gmem.allocate("out", 64),)


def kernel(cta: Cta, out: int) -> list[Role]:
    """Return the writer and the reader."""
    word = cta.smem_base

    def writer(warp: Warp) -> Generator[Blocked, None, None]:
        for value in (1, 2):
            smem.st(warp, word, np.array([value], "<u4").view(np.uint8))
            yield from named_barrier.sync(warp, 0, 64)
            yield from named_barrier.sync(warp, 1, 64)

    def reader(warp: Warp) -> Generator[Blocked, None, None]:
        for turn in range(2):
            yield from named_barrier.sync(warp, 0, 64)
            data = smem.ld(warp, word, 4)
            gmem.st(warp, np.array([out + 4 * turn]), data.reshape(1, 4))
            yield from named_barrier.sync(warp, 1, 64)

    return [writer, reader]
