"""rounds: four warps go through four rounds, with one mbarrier between."""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from fp4ref.evidence.faults.small_program import Argument, Launch
from fp4ref.hardware import gmem, mbarrier, named_barrier
from fp4ref.hardware.machine import Machine
from fp4ref.hardware.sm import Blocked, Cta, Role, Warp

LAUNCH = Launch(warps=4)


def arguments(machine: Machine) -> tuple[Argument, ...]:
    """Return the address of 128 words."""
    return (machine.gmem.allocate("out", 4 * 128),)


def kernel(cta: Cta, out: int) -> list[Role]:
    """Return four equal warps."""
    bar = cta.smem_base
    arriving = 4

    def body(warp: Warp) -> Generator[Blocked, None, None]:
        if warp.index == 0:
            mbarrier.init(warp, bar, 32 * arriving)
        yield from named_barrier.sync(warp, 0)
        for turn in range(4):
            if warp.index < arriving:
                mbarrier.arrive(warp, bar, 32)
            yield from mbarrier.try_wait(warp, bar, turn & 1)
        at = out + 128 * warp.index + 4 * np.arange(32)
        gmem.st(warp, at, np.ones((32, 4), np.uint8))

    return [body] * 4
