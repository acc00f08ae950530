"""Part 7. epilogue_warp: TMEM to registers, fusion, quantisation, TMA store.

Four warps, 128 threads; thread t of warp w owns row 32 * (w % 4) + t, because a warp
reaches only its own quarter of the lanes.
"""

from __future__ import annotations

from collections.abc import Generator

from fp4ref.gemm import cleanup
from fp4ref.gemm.epilogue.accumulator_tail import accumulator_tail
from fp4ref.gemm.epilogue.collective import finish_tile
from fp4ref.gemm.epilogue.epilogue_state import Epilogue
from fp4ref.gemm.epilogue.partial_tile import hand_on_tile
from fp4ref.gemm.epilogue.store_pipeline import release_tail
from fp4ref.gemm.epilogue_start import start_epilogue
from fp4ref.gemm.parts import Parts
from fp4ref.gemm.shared_storage import SharedStorage
from fp4ref.gemm.tile_grid import WorkTile
from fp4ref.gemm.tiles.work_iterator import WorkIterator
from fp4ref.hardware.sm import Blocked, Warp


def epilogue_warp(
    warp: Warp, storage: SharedStorage, parts: Parts
) -> Generator[Blocked, None, None]:
    """Finish every tile of this CTA, or its share of one. Frame 7 ctx."""
    e = yield from start_epilogue(warp, storage, parts)  # 7.1
    work = WorkIterator(parts.tile_scheduler(warp, storage))
    with warp.frame("7 ctx"):
        while work.has_work:
            tile = yield from work.next_prefetch()
            yield from finish_work(e, tile)
    accumulator_tail(warp, storage)
    if e.issues_stores and storage.plan.stages_d:
        yield from cleanup.store_tail(warp)
    release_tail(e)


def finish_work(e: Epilogue, work: WorkTile) -> Generator[Blocked, None, None]:
    """Finish a tile, or hand on this CTA's share of one."""
    if not e.fixup.computes_epilogue(e, work):
        yield from hand_on_tile(e, work)
        return
    yield from finish_tile(e, work)
    if e.issues_stores and e.is_inside(work):
        e.warp.machine.count("tile")
