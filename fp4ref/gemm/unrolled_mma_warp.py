"""Part 6. unrolled_mma_warp: the MMA warp, two rounds of its ring written out.

After two rounds stage, phase and scale buffer are what they were. So the place of a
k-tile in them is a constant of the compiled kernel, which has nothing to compute. A
tile begins where the last one ended; its k-tiles up to the next double round, and those
after the last one, go the way of `mma_warp`. Here the rings keep their states, and the
order of operations is the kernel's.
"""

from __future__ import annotations

from collections.abc import Generator

from fp4ref.gemm import cleanup
from fp4ref.gemm.accumulator_stage import produced_accumulator
from fp4ref.gemm.mma_warp import (
    Mma,
    alloc,
    commit_accumulator,
    multiply_k_tile,
    release_stage,
)
from fp4ref.gemm.multiply.scale_copies import ScaleCopies
from fp4ref.gemm.parts import Parts
from fp4ref.gemm.pipeline import Consumer, Producer, Stage
from fp4ref.gemm.shared_storage import SharedStorage, init_barriers
from fp4ref.gemm.tile_grid import WorkTile
from fp4ref.gemm.tiles.work_iterator import WorkIterator
from fp4ref.hardware import tcgen05
from fp4ref.hardware.sm import Blocked, Warp, elect_sync


def round_of(mma: Mma) -> int:
    """Return the k-tiles of a double round."""
    return 2 * mma.mainloop.ring.stages


def multiply_at(
    mma: Mma, work: WorkTile, accumulator: Stage, accumulate: bool
) -> Generator[Blocked, None, None]:
    """Use one k-tile of a round; nothing is asked ahead. Frames 6.6.2 to 6.7."""
    warp, copies = mma.warp, mma.scale_copies
    with warp.frame("6.6.2"):
        stage = yield from mma.mainloop.wait()
    with stage:
        elect_sync(warp)
        yield from copies.acquire()  # 6.6.4
        scales = copies.copy(stage.index, 0)
        with warp.frame("6.6.5"):
            for k_block in mma.multiplier.k_blocks:
                mma.multiplier.issue(
                    *(accumulator, stage.index, scales, work, k_block),
                    accumulate or k_block > 0,
                )
        copies.advance()


def multiply_round(
    mma: Mma, work: WorkTile, accumulator: Stage, k_tile: int
) -> Generator[Blocked, None, None]:
    """Use the k-tiles of a double round."""
    for k in range(k_tile, k_tile + round_of(mma)):
        with mma.warp.frame("6.6", *(["6.8"] if k else [])):
            yield from multiply_at(mma, work, accumulator, k > 0)


def has_round(mma: Mma, left: int) -> bool:
    """Whether a double round starts here and ends within the tile."""
    state = mma.mainloop.state
    return state.index == state.phase == 0 and left >= round_of(mma)


def multiply_in_rounds(
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
                mma.mainloop.forget()  # a peek, which a round does not ask for
                while k_tiles - k_tile >= round_of(mma):
                    yield from multiply_round(mma, work, accumulator, k_tile)
                    k_tile += round_of(mma)
            else:
                with warp.frame("6.6", *(["6.8"] if k_tile else [])):
                    yield from multiply_k_tile(mma, work, accumulator, k_tile, k_tiles)
                k_tile += 1
        with warp.frame("6.9"):
            warp.note("mma.exit", k_tiles=k_tiles, **mma.mainloop.state.facts())


def unrolled_mma_warp(
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
                yield from multiply_in_rounds(mma, tile, k_tiles)
    yield from cleanup.mma_tail(warp, mma.accumulator, taddr, allocator)
