"""Part 7. epilogue_load_warp: loads C by subtiles of 128 x 32, when beta is not 0."""

from __future__ import annotations

from collections.abc import Generator

from fp4ref.gemm.partition import subtile_coords
from fp4ref.gemm.pipeline import Producer, arrive_on_full
from fp4ref.gemm.plan.warps import WARP_THREADS
from fp4ref.gemm.shared_storage import SharedStorage, init_barriers
from fp4ref.hardware import mbarrier, tma
from fp4ref.hardware.sm import Blocked, Warp, elect_sync


def epilogue_load_warp(
    warp: Warp, storage: SharedStorage
) -> Generator[Blocked, None, None]:
    """Fill the C ring for every tile; idle without C.

    It starts after the mainloop's prologue, so that C does not delay the first k-tiles.
    """
    yield from init_barriers(warp, storage)
    tensor_map = storage.params.c
    if not storage.plan.loads_c or tensor_map is None:
        return
    scheduler = storage.tile_scheduler(warp)
    c = Producer(warp, storage.ring("c"), arrive_on_full(WARP_THREADS))
    work = scheduler.initial_work()
    yield from mbarrier.try_wait(warp, storage.ring("load_order").full[0], 0)
    while work.valid:
        next_work = yield from scheduler.fetch_next_work()
        for subtile in range(storage.plan.subtiles):
            with (yield from c.acquire()) as stage:
                elect_sync(warp)
                mbarrier.expect_tx(warp, stage.full, tensor_map.box_nbytes)
                coords = subtile_coords(work, subtile, storage.plan.tile_n)
                tma.load(
                    warp,
                    tensor_map,
                    coords,
                    storage.address("c_subtile", stage.index),
                    stage.full,
                )
        work = next_work
    yield from c.tail()
