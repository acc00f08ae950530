"""product: the tensor cores of two CTAs do one MMA of 256 x 32 x 16 together.

Each CTA loads its 128 rows of A and its 16 rows of B. All bytes count on the barrier of
the leader, which issues the MMA; its commit tells both.
"""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from fp4ref.evidence.faults.small_program import Argument, Launch
from fp4ref.hardware import (
    cluster,
    gmem,
    mbarrier,
    mma_unscaled,
    smem,
    tcgen05,
    tma,
    tmem,
)
from fp4ref.hardware.machine import Machine
from fp4ref.hardware.sm import Blocked, Cta, Role, Warp
from fp4ref.hardware.smem import SmemDescriptor
from fp4ref.hardware.tensor_map import DataType, TensorMap
from fp4ref.layout import SwizzleMode

LAUNCH = Launch(warps=1, ctas=2, smem_nbytes=6144)
ROW = 32
"""Bytes of a row of A or B: 16 elements of BF16."""
A, B = 128 * ROW, 16 * ROW
"""Bytes of A and B in each CTA."""
IDESC = 1 << 4 | 1 << 7 | 1 << 10 | 32 >> 3 << 17 | 256 >> 4 << 24
"""D is FP32, A and B are BF16; N = 32, M = 256."""


def arguments(machine: Machine) -> tuple[Argument, ...]:
    """Return the maps of A, 256 x 16, and B, 32 x 16; and the address of 64 words."""
    maps = []
    for name, rows in (("A", 256), ("B", 32)):
        ones = np.full(rows * ROW // 2, 0x3F80, "<u2").view(np.uint8)
        maps.append(
            TensorMap(
                DataType.BFLOAT16,
                machine.gmem.upload(name, ones),
                (ROW // 2, rows),
                (ROW,),
                (ROW // 2, rows // 2),
                swizzle=SwizzleMode.B32,
            )
        )
    return (*maps, machine.gmem.allocate("out", 2 * 128))


def kernel(cta: Cta, a: TensorMap, b: TensorMap, out: int) -> list[Role]:
    """Return the one warp of a CTA."""
    base, rank = cta.smem_base, cta.rank
    loaded, done, word = base, base + 8, base + 16
    a_at, b_at = base + 1024, base + 1024 + A

    def sync(warp: Warp) -> Generator[Blocked, None, None]:
        yield from cluster.wait(warp, cluster.arrive(warp))

    def tile(start: int) -> int:
        return SmemDescriptor(start, 16, 8 * ROW, SwizzleMode.B32).encode()

    def body(warp: Warp) -> Generator[Blocked, None, None]:
        mbarrier.init(warp, loaded, 1)
        mbarrier.init(warp, done, 1)
        mbarrier.fence_mbarrier_init(warp)
        yield from tmem.alloc(warp, word, 32, 2)
        yield from sync(warp)
        taddr = int(smem.ld(warp, word, 4).view("<u4")[0])
        counted = cluster.mapa(warp, loaded, 0)
        tma.load(warp, a, (0, 128 * rank), a_at, counted, cta_group=2)
        if rank == 0:
            mbarrier.arrive_expect_tx(warp, loaded, 2 * (A + B))
        tma.load(warp, b, (0, 16 * rank), b_at, counted, cta_group=2)
        if rank == 0:
            yield from mbarrier.try_wait(warp, loaded, 0)
            ab = tile(a_at), tile(b_at)
            mma_unscaled.mma(warp, taddr, *ab, IDESC, False, cta_group=2)
            tcgen05.commit(warp, done, 0b11, 2)
        yield from mbarrier.try_wait(warp, done, 0)
        tcgen05.fence_after_thread_sync(warp)
        registers = tmem.ld(warp, taddr)
        yield from tmem.wait_ld(warp)
        at = out + 128 * rank + 4 * np.arange(32)
        gmem.st(warp, at, registers.words.view(np.uint8))
        tcgen05.fence_before_thread_sync(warp)
        yield from sync(warp)
        tcgen05.fence_after_thread_sync(warp)
        tmem.dealloc(warp, taddr, 32, 2)

    return [body]
