"""Part 6. mma_warp: copies scales to TMEM, issues the MMAs, commits.

One thread issues everything. A mainloop stage is given back by a ``tcgen05.commit``,
which arrives when the MMAs have read it; another commit after the last k-tile hands the
accumulator to the epilogue.

After two rounds of the ring stage, phase and scale buffer are what they were. The
kernel therefore has two written out, in which every place is a constant. A tile begins
where the last one ended: its k-tiles before and after such rounds are used one stage at
a time, by the same text. Here the rings keep their states, and only the order of
operations is the kernel's.
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
        k_tile = 0
        while k_tile < k_tiles:
            if has_round(mma, k_tiles - k_tile):
                k_tile = yield from multiply_rounds(
                    mma, work, accumulator, k_tile, k_tiles
                )
            else:
                group = range(k_tile, min(k_tile + mma.scale_copies.k_group, k_tiles))
                yield from multiply_k_tile(
                    mma, work, accumulator, group, peeks=group.stop < k_tiles
                )
                k_tile = group.stop
        with warp.frame("6.9"):
            warp.note("mma.exit", k_tiles=k_tiles, **mma.mainloop.state.facts())


def has_round(mma: Mma, left: int) -> bool:
    """Whether a whole round starts here and ends within the tile."""
    state, whole = mma.mainloop.state, mma.scale_copies.storage.plan.round_k_tiles
    return whole > 0 and state.index == state.phase == 0 and left >= whole


def begin_round(mma: Mma) -> None:
    """Forget what a peek has answered: a round asks for none.

    All else is as the kernel began, which the compiled one has to be told.
    """
    assert mma.scale_copies.buffer == 0, "a round has an even number of stages"
    mma.mainloop.forget()


def multiply_rounds(
    mma: Mma, work: WorkTile, accumulator: Stage, k_tile: int, k_tiles: int
) -> Generator[Blocked, None, int]:
    """Use the k-tiles of whole rounds; returns the one after them."""
    k_group = mma.scale_copies.k_group
    whole = mma.scale_copies.storage.plan.round_k_tiles
    while k_tiles - k_tile >= whole:
        begin_round(mma)
        for first in range(k_tile, k_tile + whole, k_group):
            group = range(first, first + k_group)
            yield from multiply_k_tile(mma, work, accumulator, group, peeks=False)
        k_tile += whole
    return k_tile


def multiply_k_tile(
    mma: Mma, work: WorkTile, accumulator: Stage, group: range, peeks: bool
) -> Generator[Blocked, None, None]:
    """Wait for one stage, use its k-tiles, give it back. Frames 6.6.2 to 6.7."""
    warp, copies = mma.warp, mma.scale_copies
    with warp.frame("6.6", *(["6.8"] if group.start else [])):
        with warp.frame("6.6.2"):
            stage = yield from mma.mainloop.wait()
        with stage:
            with warp.frame("6.6.3"):
                if peeks:
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
