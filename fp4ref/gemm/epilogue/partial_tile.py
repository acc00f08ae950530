"""Part 7. partial_tile: an accumulator of split-K that is not the tile's last."""

from __future__ import annotations

from collections.abc import Generator

from fp4ref.gemm.epilogue.collective import take_subtile, wait_for_accumulator
from fp4ref.gemm.epilogue.epilogue_state import Epilogue
from fp4ref.gemm.epilogue.subtile_order import subtile_order
from fp4ref.gemm.tile_grid import WorkTile
from fp4ref.hardware.sm import Blocked


def hand_on_tile(e: Epilogue, work: WorkTile) -> Generator[Blocked, None, None]:
    """Add one accumulator to the tile's sum, for the next split to go on.

    An empty slice has no accumulator: nothing was multiplied, and nobody waits for it.
    """
    if not e.params.split_k.k_tile_count(work.split):
        return
    accumulator, number = yield from wait_for_accumulator(e, work)
    for i, subtile in enumerate(subtile_order(e.storage.plan, number)):
        acc = yield from take_subtile(e, work, accumulator, number, i)  # (32, 32)
        e.fixup.store(e, work, subtile, acc)
    yield from e.fixup.arrive(e, work)
