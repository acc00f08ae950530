"""columns: four warps write a column of TMEM each lane, read it back and store it."""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from fp4ref.evidence.faults.small_program import Argument, Launch
from fp4ref.hardware import gmem, named_barrier, smem, tcgen05, tmem
from fp4ref.hardware.machine import Machine
from fp4ref.hardware.sm import Blocked, Cta, Role, Warp

LAUNCH = Launch(warps=4)


def arguments(machine: Machine) -> tuple[Argument, ...]:
    """Return the address of 128 words."""
    return (machine.gmem.allocate("out", 4 * 128),)


def kernel(cta: Cta, out: int) -> list[Role]:
    """Return four equal warps; the first one allocates and frees."""
    word, spare = cta.smem_base, cta.smem_base + 4

    def body(warp: Warp) -> Generator[Blocked, None, None]:
        if warp.index == 0:
            yield from tmem.alloc(warp, word, 256)
            yield from tmem.alloc(warp, spare, 128)
            tmem.relinquish_alloc_permit(warp)
        yield from named_barrier.sync(warp, 0)
        taddr = int(smem.ld(warp, word, 4).view("<u4")[0])
        mine = taddr + (warp.index << 21)
        threads = np.arange(32, dtype=np.uint32)[:, None] + np.uint32(32 * warp.index)
        tmem.st(warp, mine, threads)
        yield from tmem.wait_st(warp)
        registers = tmem.ld(warp, mine)
        yield from tmem.wait_ld(warp)
        at = out + 4 * threads[:, 0].astype(np.int64)
        gmem.st(warp, at, registers.words.view(np.uint8))
        tcgen05.fence_before_thread_sync(warp)
        yield from named_barrier.sync(warp, 0)
        if warp.index == 0:
            tcgen05.fence_after_thread_sync(warp)
            tmem.dealloc(warp, taddr, 256)
            tmem.dealloc(warp, int(smem.ld(warp, spare, 4).view("<u4")[0]), 128)

    return [body] * 4
