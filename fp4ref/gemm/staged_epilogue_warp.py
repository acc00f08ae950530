"""Part 7. staged_epilogue_warp: an epilogue whose warps bring their own rows of D.

Four warps, or more of which two share the lanes of a quarter: a warp reaches only its
own. They meet each other nowhere.
"""

from __future__ import annotations

from collections.abc import Generator

from fp4ref.gemm.epilogue.accumulator_tail import accumulator_tail
from fp4ref.gemm.epilogue.epilogue_state import Epilogue
from fp4ref.gemm.epilogue.staged_tile import finish_staged_tile
from fp4ref.gemm.epilogue_warp import tmem_base
from fp4ref.gemm.parts import Parts
from fp4ref.gemm.pipeline import Consumer, arrive_on_empty
from fp4ref.gemm.plan.warps import WARP_THREADS
from fp4ref.gemm.shared_storage import SharedStorage, init_barriers
from fp4ref.gemm.tiles.work_iterator import WorkIterator
from fp4ref.hardware.sm import Blocked, Warp


def staged_epilogue_warp(
    warp: Warp, storage: SharedStorage, parts: Parts
) -> Generator[Blocked, None, None]:
    """Finish this warp's rows of every tile of this CTA. Frame 7 ctx."""
    assert parts.staging is not None, "the plan has chosen one"
    assert parts.loop is not None, "the plan has chosen one"
    yield from init_barriers(warp, storage)
    taddr = yield from tmem_base(warp, storage)  # 7.1
    e = Epilogue(
        warp,
        storage,
        taddr,
        Consumer(warp, storage.ring("accumulator"), arrive_on_empty(WARP_THREADS)),
        Consumer(warp, storage.ring("c"), arrive_on_empty(WARP_THREADS)),
        parts.fusion,
        parts.output,
        parts.fixup,
        parts.element_wise,
    )
    work = WorkIterator(parts.tile_scheduler(warp, storage))
    with warp.frame("7 ctx"):
        while work.has_work:
            tile = yield from work.next_prefetch()
            yield from finish_staged_tile(e, parts.staging, parts.loop, tile)
            if e.issues_stores and e.is_inside(tile):
                warp.machine.count("tile")
    accumulator_tail(warp, storage)
    yield from parts.staging.tail(e)
