"""scales: four warps store scales to shared memory; tcgen05.cp takes them to TMEM."""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from fp4ref.evidence.faults.small_program import Argument, Launch
from fp4ref.hardware import gmem, mbarrier, named_barrier, smem, tcgen05, tmem
from fp4ref.hardware.machine import Machine
from fp4ref.hardware.sm import Blocked, Cta, Role, Warp
from fp4ref.hardware.smem import SmemDescriptor
from fp4ref.layout import SwizzleMode

LAUNCH = Launch(warps=4)


def arguments(machine: Machine) -> tuple[Argument, ...]:
    """Return the address of 128 words."""
    return (machine.gmem.allocate("out", 4 * 128),)


def kernel(cta: Cta, out: int) -> list[Role]:
    """Return four equal warps; the first one allocates, copies and frees."""
    bar, word, atom = cta.smem_base, cta.smem_base + 8, cta.smem_base + 1024

    def body(warp: Warp) -> Generator[Blocked, None, None]:
        if warp.index == 0:
            mbarrier.init(warp, bar, 1)
            mbarrier.fence_mbarrier_init(warp)
            yield from tmem.alloc(warp, word, 32)
        smem.st(warp, atom + 128 * warp.index, np.full(128, 0x38, np.uint8))
        smem.fence_proxy_async(warp)
        yield from named_barrier.sync(warp, 0)
        taddr = int(smem.ld(warp, word, 4).view("<u4")[0])
        if warp.index == 0:
            rows = SmemDescriptor(atom, 0, 128, SwizzleMode.NONE).encode()
            tcgen05.cp(warp, taddr, rows)
            tcgen05.commit(warp, bar)
        yield from mbarrier.try_wait(warp, bar, 0)
        tcgen05.fence_after_thread_sync(warp)
        registers = tmem.ld(warp, taddr + (warp.index << 21))
        yield from tmem.wait_ld(warp)
        at = out + 128 * warp.index + 4 * np.arange(32)
        gmem.st(warp, at, registers.words.view(np.uint8))
        tcgen05.fence_before_thread_sync(warp)
        yield from named_barrier.sync(warp, 0)
        if warp.index == 0:
            tcgen05.fence_after_thread_sync(warp)
            tmem.dealloc(warp, taddr, 32)

    return [body] * 4
