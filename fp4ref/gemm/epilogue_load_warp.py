"""Part 7. epilogue_load_warp: loads C by subtiles, when beta is not 0."""

from __future__ import annotations

from collections.abc import Generator

from fp4ref.gemm.epilogue.subtile_order import subtile_order
from fp4ref.gemm.fusion.callbacks import call
from fp4ref.gemm.load.load_order import LoadOrder
from fp4ref.gemm.partition import subtile_coords
from fp4ref.gemm.parts import Parts
from fp4ref.gemm.pipeline import Producer, arrive_on_full
from fp4ref.gemm.plan.warps import WARP_THREADS
from fp4ref.gemm.shared_storage import SharedStorage, init_barriers
from fp4ref.gemm.tile_grid import WorkTile
from fp4ref.gemm.tiles.work_iterator import WorkIterator
from fp4ref.hardware import mbarrier, tma
from fp4ref.hardware.sm import Blocked, Warp, elect_sync


def epilogue_load_warp(
    warp: Warp, storage: SharedStorage, parts: Parts
) -> Generator[Blocked, None, None]:
    """Fill the C ring for every tile that this CTA finishes.

    It starts after the mainloop's prologue, so that C does not delay the first k-tiles.
    """
    yield from init_barriers(warp, storage)
    c = Producer(warp, storage.ring("c"), arrive_on_full(WARP_THREADS))
    work = WorkIterator(parts.tile_scheduler(warp, storage))
    yield from LoadOrder(warp, storage).wait()
    split_k, accumulator = storage.params.split_k, 0
    while work.has_work:
        tile = yield from work.next_prefetch()
        if split_k.is_final_split(tile.split):
            yield from call(parts.fusion, "load_begin", c, tile)
            for subtile in subtile_order(storage.plan, accumulator):
                yield from load_subtile(storage, parts, c, tile, subtile)
            yield from call(parts.fusion, "load_end", c, tile)
        if split_k.k_tile_count(tile.split):
            accumulator ^= 1
    yield from c.tail()


def load_subtile(
    storage: SharedStorage, parts: Parts, c: Producer, work: WorkTile, subtile: int
) -> Generator[Blocked, None, None]:
    """Load one subtile of C, and what nodes load with it."""
    warp, plan, tensor_map = c.warp, storage.plan, storage.params.c
    assert tensor_map is not None, "a kernel without C has no such warp"
    with (yield from c.acquire()) as stage:
        elect_sync(warp)
        mbarrier.expect_tx(warp, stage.full, plan.c_subtile_nbytes)
        address = storage.address("c_subtile", stage.index)
        for box in range(plan.c_boxes):
            coords = subtile_coords(work, subtile, plan, box, plan.c_box_n)
            target = address + box * plan.subtile_box_rows * plan.c_box_row_nbytes
            tma.load(warp, tensor_map, coords, target, stage.full)
        yield from call(parts.fusion, "load_step", c, work, subtile, stage)
