"""pair: two CTAs share rows by multicast, add one of their own, and swap a word."""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from fp4ref.evidence.faults.small_program import Argument, Launch
from fp4ref.hardware import cluster, gmem, mbarrier, smem, tma
from fp4ref.hardware.machine import Machine
from fp4ref.hardware.sm import Blocked, Cta, Role, Warp
from fp4ref.hardware.tensor_map import DataType, TensorMap

LAUNCH = Launch(warps=1, ctas=2, smem_nbytes=2048)
NBYTES = 128
"""Of a row: one word for each thread."""


def arguments(machine: Machine) -> tuple[Argument, ...]:
    """Return the maps of A and B, two rows each, and the address of 64 words."""
    rows = np.arange(2 * NBYTES, dtype=np.uint8)
    maps = [
        TensorMap(
            DataType.UINT8,
            machine.gmem.upload(name, rows),
            (NBYTES, 2),
            (NBYTES,),
            (NBYTES, 1),
        )
        for name in "AB"
    ]
    return (*maps, machine.gmem.allocate("out", 2 * NBYTES))


def kernel(cta: Cta, a: TensorMap, b: TensorMap, out: int) -> list[Role]:
    """Return the one warp of a CTA."""
    base, rank = cta.smem_base, cta.rank
    loaded, swapped, word = base, base + 8, base + 16
    own, both = base + 1024, base + 1152

    def sync(warp: Warp) -> Generator[Blocked, None, None]:
        yield from cluster.wait(warp, cluster.arrive(warp))

    def body(warp: Warp) -> Generator[Blocked, None, None]:
        mbarrier.init(warp, loaded, 1)
        mbarrier.init(warp, swapped, 1)
        mbarrier.fence_mbarrier_init(warp)
        yield from sync(warp)
        mbarrier.arrive_expect_tx(warp, loaded, 3 * NBYTES)
        tma.load(warp, a, (0, rank), own, loaded)
        tma.load(warp, b, (0, rank), both + NBYTES * rank, loaded, 0b11)
        yield from mbarrier.try_wait(warp, loaded, 0)
        rows = [smem.ld(warp, own + NBYTES * i, NBYTES) for i in range(3)]
        total = np.sum([each.view("<u4") for each in rows], axis=0, dtype="<u4")
        peer = rank ^ 1
        smem.st(warp, cluster.mapa(warp, word, peer), total[:1].view(np.uint8))
        mbarrier.arrive(warp, cluster.mapa(warp, swapped, peer))
        yield from mbarrier.try_wait(warp, swapped, 0)
        # Arrivals of Python warps name no scope; this one has both CTAs in it.
        yield from sync(warp)
        total = total + smem.ld(warp, word, 4).view("<u4")
        at = out + NBYTES * rank + 4 * np.arange(32)
        gmem.st(warp, at, total.astype("<u4").view(np.uint8).reshape(32, 4))
        yield from sync(warp)

    return [body]
