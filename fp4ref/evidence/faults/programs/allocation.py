"""allocation: two CTAs allocate columns of TMEM together, and free them."""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from fp4ref.evidence.faults.small_program import Argument, Launch
from fp4ref.hardware import cluster, gmem, smem, tmem
from fp4ref.hardware.machine import Machine
from fp4ref.hardware.sm import Blocked, Cta, Role, Warp

LAUNCH = Launch(warps=1, ctas=2)


def arguments(machine: Machine) -> tuple[Argument, ...]:
    """Return the address of two words: where the columns of each CTA begin."""
    return (machine.gmem.allocate("out", 2 * 4),)


def kernel(cta: Cta, out: int) -> list[Role]:
    """Return the one warp of a CTA."""
    word = cta.smem_base

    def body(warp: Warp) -> Generator[Blocked, None, None]:
        yield from tmem.alloc(warp, word, 64, 2)
        yield from cluster.wait(warp, cluster.arrive(warp))
        taddr = smem.ld(warp, word, 4)
        gmem.st(warp, np.array([out + 4 * cta.rank]), taddr.reshape(1, 4))
        tmem.dealloc(warp, int(taddr.view("<u4")[0]), 64, 2)
        tmem.relinquish_alloc_permit(warp, 2)

    return [body]
