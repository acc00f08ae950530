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
from fp4ref.gemm.parts import Parts
from fp4ref.gemm.pipeline import Consumer, arrive_on_empty
from fp4ref.gemm.plan.warps import WARP_THREADS, NamedBarrierId
from fp4ref.gemm.shared_storage import SharedStorage, init_barriers
from fp4ref.gemm.tile_grid import WorkTile
from fp4ref.gemm.tiles.work_iterator import WorkIterator
from fp4ref.hardware import named_barrier, smem
from fp4ref.hardware.sm import Blocked, Warp, frame


def epilogue_warp(
    warp: Warp, storage: SharedStorage, parts: Parts
) -> Generator[Blocked, None, None]:
    """Finish every tile of this CTA, or its share of one. Frame 7 ctx."""
    yield from init_barriers(warp, storage)
    taddr = yield from tmem_base(warp, storage)
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


@frame("7.1")
def tmem_base(warp: Warp, storage: SharedStorage) -> Generator[Blocked, None, int]:
    """Wait for the MMA warp's allocation, and read its address. Frame 7.1."""
    yield from named_barrier.sync(
        warp,
        NamedBarrierId.TMEM_ALLOCATION.value,
        WARP_THREADS + storage.plan.epilogue_threads,
    )
    word = smem.ld(warp, storage.address("tmem_pointer"), 4)
    return int(word.view("<u4")[0])
