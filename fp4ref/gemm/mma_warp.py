"""Part 6. mma_warp: copies scales to TMEM, issues the MMAs, commits.

One thread issues everything. A mainloop stage is given back by a ``tcgen05.commit``,
which arrives when the MMAs have read it; another commit after the last k-tile hands the
accumulator to the epilogue.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

from fp4ref.gemm import cleanup
from fp4ref.gemm.accumulator_stage import produced_accumulator
from fp4ref.gemm.multiply.allocator import Allocator
from fp4ref.gemm.multiply.scale_copies import ScaleCopies
from fp4ref.gemm.parts import Multiplier, Parts
from fp4ref.gemm.pipeline import Consumer, Producer, Stage
from fp4ref.gemm.plan.warps import WARP_THREADS, NamedBarrierId
from fp4ref.gemm.shared_storage import SharedStorage, init_barriers
from fp4ref.gemm.tile_grid import WorkTile
from fp4ref.gemm.tiles.work_iterator import WorkIterator
from fp4ref.hardware import named_barrier, smem, tcgen05, tmem
from fp4ref.hardware.sm import Blocked, Warp, elect_sync, frame

TMEM_COLUMNS = tmem.COLUMNS


@dataclass(slots=True)
class Mma:
    """The MMA warp's registers: its rings, and what multiplies."""

    warp: Warp
    mainloop: Consumer
    accumulator: Producer
    scale_copies: ScaleCopies
    multiplier: Multiplier


def mma_warp(
    warp: Warp, storage: SharedStorage, parts: Parts
) -> Generator[Blocked, None, None]:
    """Allocate TMEM, multiply every tile of this CTA, free TMEM. Frame 6 ctx."""
    yield from init_barriers(warp, storage)
    allocator = parts.allocator(warp, storage)
    taddr = yield from alloc(warp, storage, allocator)
    mma = Mma(
        warp,
        Consumer(warp, storage.ring("mainloop"), release_stage),
        Producer(warp, storage.ring("accumulator"), commit_accumulator),
        ScaleCopies(warp, storage, taddr),
        parts.multiplier(warp, storage, taddr),
    )
    work = WorkIterator(parts.tile_scheduler(warp, storage))
    split_k = storage.params.split_k
    with warp.frame("6 ctx"):
        while work.has_work:
            tile = yield from work.next_prefetch()
            k_tiles = split_k.k_tile_count(tile.split)
            if storage.cta.leads and k_tiles:
                yield from multiply_tile(mma, tile, k_tiles)
    yield from cleanup.mma_tail(warp, mma.accumulator, taddr, allocator)


@frame("4.2")
def alloc(
    warp: Warp, storage: SharedStorage, allocator: Allocator
) -> Generator[Blocked, None, int]:
    """Allocate all of TMEM and tell the epilogue; returns the address. Frame 4.2."""
    yield from allocator.alloc(storage.address("tmem_pointer"), TMEM_COLUMNS)
    named_barrier.arrive(
        warp,
        NamedBarrierId.TMEM_ALLOCATION.value,
        WARP_THREADS + storage.plan.epilogue_threads,
    )
    word = smem.ld(warp, storage.address("tmem_pointer"), 4)
    return int(word.view("<u4")[0])


@frame("6.7")
def release_stage(warp: Warp, stage: Stage) -> None:
    """``consumer_release``: the stage is empty when its MMAs are done. Frame 6.7."""
    to = stage.signals
    tcgen05.commit(warp, stage.empty, to.empty, to.cta_group)


@frame("6.10")
def commit_accumulator(warp: Warp, stage: Stage) -> None:
    """``producer_commit``: hand the accumulator to the epilogue. Frame 6.10."""
    to = stage.signals
    tcgen05.commit(warp, stage.full, to.full, to.cta_group)


def multiply_tile(
    mma: Mma, work: WorkTile, k_tiles: int
) -> Generator[Blocked, None, None]:
    """Accumulate all k-tiles of one work unit. Frames 6.4 to 6.10."""
    warp = mma.warp
    with warp.frame("6.4"):
        mma.mainloop.peek()
    with warp.frame("6.6.1"):
        accumulator = yield from mma.accumulator.acquire()
    with accumulator:
        tcgen05.fence_after_thread_sync(warp)
        with warp.frame("6.5"):
            number = produced_accumulator(mma.scale_copies.storage.plan, accumulator)
            warp.note("accumulate", value="zero", stage=number)
        for k_tile in range(0, k_tiles, mma.scale_copies.k_group):
            with warp.frame("6.6", *(["6.8"] if k_tile else [])):
                yield from multiply_k_tile(mma, work, accumulator, k_tile, k_tiles)
        with warp.frame("6.9"):
            warp.note("mma.exit", k_tiles=k_tiles, **mma.mainloop.state.facts())


def multiply_k_tile(
    mma: Mma, work: WorkTile, accumulator: Stage, k_tile: int, k_tiles: int
) -> Generator[Blocked, None, None]:
    """Wait for one stage, use its k-tiles, give it back. Frames 6.6.2 to 6.7."""
    warp, copies = mma.warp, mma.scale_copies
    group = range(k_tile, min(k_tile + copies.k_group, k_tiles))
    with warp.frame("6.6.2"):
        stage = yield from mma.mainloop.wait()
    with stage:
        with warp.frame("6.6.3"):
            if group.stop < k_tiles:
                mma.mainloop.peek()
        elect_sync(warp)
        for i, k in enumerate(group):
            buffer = stage.index * copies.k_group + i
            if i == 0:
                yield from copies.acquire()  # 6.6.4
            scales = copies.copy(buffer, i)
            with warp.frame("6.6.5"):
                for k_block in mma.multiplier.k_blocks:
                    accumulate = k > 0 or k_block > 0
                    mma.multiplier.issue(
                        accumulator, buffer, scales, work, k_block, accumulate
                    )
        copies.advance()
