"""Part 7. partial_tile: an accumulator of split-K that is not the tile's last."""

from __future__ import annotations

from collections.abc import Generator

from fp4ref.gemm.accumulator_stage import consumed_accumulator
from fp4ref.gemm.epilogue.collective import load_accumulator
from fp4ref.gemm.epilogue.epilogue_state import Epilogue
from fp4ref.gemm.epilogue.subtile_order import subtile_order
from fp4ref.gemm.tile_grid import WorkTile
from fp4ref.hardware import tcgen05
from fp4ref.hardware.sm import Blocked


def hand_on_tile(e: Epilogue, work: WorkTile) -> Generator[Blocked, None, None]:
    """Add one accumulator to the tile's sum, for the next split to go on.

    An empty slice has no accumulator: nothing was multiplied, and nobody waits for it.
    """
    if not e.params.split_k.k_tile_count(work.split):
        return
    warp, plan = e.warp, e.storage.plan
    accumulator = yield from e.accumulator.wait()
    tcgen05.fence_after_thread_sync(warp)
    number = consumed_accumulator(plan, accumulator)
    yield from e.fixup.wait(e, work)
    for i, subtile in enumerate(subtile_order(plan, number)):
        acc = yield from load_accumulator(e, number, subtile)  # (32, 32)
        if i == plan.subtiles_to_release - 1:
            with accumulator:
                tcgen05.fence_before_thread_sync(warp)
        acc = e.fixup.load_add(e, work, subtile, acc)
        e.fixup.store(e, work, subtile, acc)
    yield from e.fixup.arrive(e, work)
