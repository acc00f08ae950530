"""Part 7. staged_epilogue_warp: an epilogue whose warps bring their own rows of D.

Four warps, or more of which two share the lanes of a quarter: a warp reaches only its
own. They meet each other nowhere. Staging and loop are choices that no other epilogue
has, so it is a role of its own.
"""

from __future__ import annotations

from collections.abc import Generator

from fp4ref.gemm.epilogue.accumulator_tail import accumulator_tail
from fp4ref.gemm.epilogue.staged_tile import finish_staged_tile
from fp4ref.gemm.epilogue_start import start_epilogue
from fp4ref.gemm.parts import Parts
from fp4ref.gemm.shared_storage import SharedStorage
from fp4ref.gemm.tiles.work_iterator import WorkIterator
from fp4ref.hardware.sm import Blocked, Warp


def staged_epilogue_warp(
    warp: Warp, storage: SharedStorage, parts: Parts
) -> Generator[Blocked, None, None]:
    """Finish this warp's rows of every tile of this CTA. Frame 7 ctx."""
    assert parts.staging is not None, "the plan has chosen one"
    assert parts.loop is not None, "the plan has chosen one"
    e = yield from start_epilogue(warp, storage, parts)  # 7.1
    work = WorkIterator(parts.tile_scheduler(warp, storage))
    with warp.frame("7 ctx"):
        while work.has_work:
            tile = yield from work.next_prefetch()
            yield from finish_staged_tile(e, parts.staging, parts.loop, tile)
            if e.issues_stores and e.is_inside(tile):
                warp.machine.count("tile")
    accumulator_tail(warp, storage)
    yield from parts.staging.tail(e)
