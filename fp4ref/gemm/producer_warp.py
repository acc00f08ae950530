"""Part 5. producer_warp: the load warp fills mainloop stages by TMA.

For each k-tile: wait until the stage is empty, expect its bytes, start four copies. The
first stages of a tile are a prologue, after which the epilogue load warp may start.
"""

from __future__ import annotations

from collections.abc import Generator

from fp4ref.gemm import cleanup
from fp4ref.gemm.partition import a_coords, b_coords, sfa_coords, sfb_coords
from fp4ref.gemm.pipeline import Producer, arrive_on_full, committed_by_tma
from fp4ref.gemm.plan.warps import WARP_THREADS
from fp4ref.gemm.shared_storage import SharedStorage, init_barriers
from fp4ref.gemm.tile_scheduler import WorkTile
from fp4ref.hardware import clc, mbarrier, tma
from fp4ref.hardware.sm import Blocked, Warp, elect_sync


def producer_warp(warp: Warp, storage: SharedStorage) -> Generator[Blocked, None, None]:
    """Load every tile that this CTA works on. Frame 5 ctx."""
    plan, params = storage.plan, storage.params
    for tensor_map in (params.a, params.b, params.sfa, params.sfb):
        tma.prefetch_tensormap(warp, tensor_map)
    yield from init_barriers(warp, storage)
    yield from clc.griddepcontrol_wait(warp)
    scheduler = storage.tile_scheduler(warp)
    mainloop = Producer(warp, storage.ring("mainloop"), committed_by_tma)
    throttle = Producer(warp, storage.ring("throttle"), arrive_on_full(WARP_THREADS))
    work, first = scheduler.initial_work(), True
    with warp.frame("5 ctx"):
        while work.valid:
            if plan.ring("throttle").used:
                with (yield from throttle.acquire()):
                    pass
            prologue = min(plan.mainloop_stages, params.k_tiles)
            with warp.frame("2.3"):
                warp.note("k_tile_count", k_tiles=params.k_tiles, prologue=prologue)
            yield from load(warp, storage, mainloop, work, 0, prologue)
            if first and plan.loads_c:
                mbarrier.arrive(warp, storage.ring("load_order").full[0], WARP_THREADS)
            first = False
            with warp.frame("5.7"):
                yield from load(warp, storage, mainloop, work, prologue, params.k_tiles)
            work = yield from scheduler.fetch_next_work()
        yield from cleanup.load_tail(warp, mainloop)


def load(
    warp: Warp,
    storage: SharedStorage,
    mainloop: Producer,
    work: WorkTile,
    first: int,
    last: int,
) -> Generator[Blocked, None, None]:
    """Load k-tiles `first` to `last` - 1. Frames 5.3 to 5.6."""
    if first < last:
        with warp.frame("5.3"):
            mainloop.peek()
    for k_tile in range(first, last):
        with warp.frame("5.4", *(["5.5"] if k_tile else [])):
            yield from load_k_tile(warp, storage, mainloop, work, k_tile, last)
    with warp.frame("5.6"):
        state = mainloop.state
        warp.note(
            "load.exit",
            k_tiles=last - first,
            index=state.index,
            phase=state.phase,
            count=state.count,
        )


def load_k_tile(
    warp: Warp,
    storage: SharedStorage,
    mainloop: Producer,
    work: WorkTile,
    k_tile: int,
    last: int,
) -> Generator[Blocked, None, None]:
    """Fill one stage. Frames 5.4.1 to 5.4.9."""
    plan, params = storage.plan, storage.params
    with warp.frame("5.4.1"):
        stage = yield from mainloop.acquire()
        with warp.frame("5.4.8"):
            mbarrier.arrive_expect_tx(warp, stage.full, plan.stage_tx_bytes)
    with stage:
        with warp.frame("5.4.2"):
            if k_tile + 1 < last:
                mainloop.peek()
        with warp.frame("5.4.3"):
            elect_sync(warp)
        i = stage.index
        with warp.frame("5.4.4"):
            tma.load(
                warp,
                params.a,
                a_coords(work, k_tile),
                storage.address("a", i),
                stage.full,
            )
        with warp.frame("5.4.5"):
            coords = b_coords(work, k_tile, plan.tile_n)
            tma.load(warp, params.b, coords, storage.address("b", i), stage.full)
        with warp.frame("5.4.6"):
            coords = sfa_coords(work, k_tile)
            tma.load(warp, params.sfa, coords, storage.address("sfa", i), stage.full)
        with warp.frame("5.4.7"):
            coords = sfb_coords(work, k_tile, plan.tile_n)
            tma.load(warp, params.sfb, coords, storage.address("sfb", i), stage.full)
    with warp.frame("5.4.9"):
        warp.note("load.k_tile", k_tile=k_tile, left=last - k_tile - 1)
