"""Part 6. mma_warp: copies scales to TMEM, issues the MMAs, commits.

One thread issues everything. A mainloop stage is given back by a ``tcgen05.commit``,
which arrives when the MMAs have read it; another commit after the last k-tile hands the
accumulator to the epilogue.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

from fp4ref.gemm import cleanup
from fp4ref.gemm.descriptors import (
    K_BLOCK_STEP,
    K_BLOCKS,
    SF_BLOCK_STEP,
    SF_COLUMNS,
    operand_descriptor,
    scale_descriptor,
)
from fp4ref.gemm.pipeline import Consumer, Producer, Stage
from fp4ref.gemm.plan.warps import EPILOGUE_THREADS, WARP_THREADS, NamedBarrierId
from fp4ref.gemm.shared_storage import SharedStorage, init_barriers
from fp4ref.gemm.tile_scheduler import WorkTile
from fp4ref.hardware import mbarrier, named_barrier, smem, tcgen05, tmem
from fp4ref.hardware.sm import Blocked, Warp, elect_sync
from fp4ref.layout import sfb_column_shift

TMEM_COLUMNS = tmem.COLUMNS


@dataclass(slots=True)
class Mma:
    """The MMA warp's registers: its rings, the TMEM base and a k-tile count."""

    warp: Warp
    storage: SharedStorage
    taddr: int
    mainloop: Consumer
    accumulator: Producer


def mma_warp(warp: Warp, storage: SharedStorage) -> Generator[Blocked, None, None]:
    """Allocate TMEM, multiply every tile of this CTA, free TMEM. Frame 6 ctx."""
    yield from init_barriers(warp, storage)
    with warp.frame("4.2"):
        yield from tmem.alloc(warp, storage.address("tmem_pointer"), TMEM_COLUMNS)
        named_barrier.arrive(
            warp, NamedBarrierId.TMEM_ALLOCATION.value, WARP_THREADS + EPILOGUE_THREADS
        )
        word = smem.ld(warp, storage.address("tmem_pointer"), 4)
        taddr = int(word.view("<u4")[0])
    mma = Mma(
        warp,
        storage,
        taddr,
        Consumer(warp, storage.ring("mainloop"), release_stage),
        Producer(warp, storage.ring("accumulator"), commit_accumulator),
    )
    scheduler = storage.tile_scheduler(warp)
    work = scheduler.initial_work()
    with warp.frame("6 ctx"):
        while work.valid:
            next_work = yield from scheduler.fetch_next_work()
            yield from multiply_tile(mma, work)
            work = next_work
    yield from cleanup.mma_tail(warp, mma.accumulator, taddr, TMEM_COLUMNS)


def release_stage(warp: Warp, stage: Stage) -> None:
    """``consumer_release``: the stage is empty when its MMAs are done. Frame 6.7."""
    with warp.frame("6.7"):
        tcgen05.commit(warp, stage.empty)


def commit_accumulator(warp: Warp, stage: Stage) -> None:
    """``producer_commit``: hand the accumulator to the epilogue. Frame 6.10."""
    with warp.frame("6.10"):
        tcgen05.commit(warp, stage.full)


def multiply_tile(mma: Mma, work: WorkTile) -> Generator[Blocked, None, None]:
    """Accumulate all k-tiles of one tile. Frames 6.4 to 6.10."""
    warp, k_tiles = mma.warp, mma.storage.params.k_tiles
    with warp.frame("6.4"):
        mma.mainloop.peek()
    with warp.frame("6.6.1"):
        accumulator = yield from mma.accumulator.acquire()
    with accumulator:
        tcgen05.fence_after_thread_sync(warp)
        with warp.frame("6.5"):
            warp.note("accumulate", value="zero", stage=accumulator.index)
        for k_tile in range(k_tiles):
            with warp.frame("6.6", *(["6.8"] if k_tile else [])):
                yield from multiply_k_tile(mma, work, accumulator, k_tile)
        with warp.frame("6.9"):
            state = mma.mainloop.state
            warp.note(
                "mma.exit",
                k_tiles=k_tiles,
                index=state.index,
                phase=state.phase,
                count=state.count,
            )


def multiply_k_tile(
    mma: Mma, work: WorkTile, accumulator: Stage, k_tile: int
) -> Generator[Blocked, None, None]:
    """Wait for one stage, use it, give it back. Frames 6.6.2 to 6.7."""
    warp, storage, plan = mma.warp, mma.storage, mma.storage.plan
    count = mma.mainloop.state.count
    with warp.frame("6.6.2"):
        stage = yield from mma.mainloop.wait()
    with stage:
        with warp.frame("6.6.3"):
            if k_tile + 1 < storage.params.k_tiles:
                mma.mainloop.peek()
        elect_sync(warp)
        with warp.frame("6.6.4"):
            yield from copy_scales(mma, stage.index, count)
        tmem_map = plan.tmem
        buffer = count % plan.scale_buffers
        d = mma.taddr + tmem_map.accumulators[accumulator.index]
        shift = sfb_column_shift(plan.tile_n, work.n)
        a_desc = operand_descriptor(storage.address("a", stage.index))
        b_desc = operand_descriptor(storage.address("b", stage.index))
        with warp.frame("6.6.5"):
            for k_block in range(K_BLOCKS):
                accumulate = k_tile > 0 or k_block > 0
                labels = ["6.6.6", "6.6.9", "6.6.10", *(["6.6.12"] * (k_block > 0))]
                with warp.frame(*labels):
                    tcgen05.mma(
                        warp,
                        d,
                        a_desc + k_block * K_BLOCK_STEP,
                        b_desc + k_block * K_BLOCK_STEP,
                        plan.idesc(storage.params.scale_format),
                        mma.taddr + tmem_map.sfa[buffer] + k_block * SF_COLUMNS,
                        mma.taddr
                        + tmem_map.sfb[buffer]
                        + k_block * plan.sfb_columns
                        + shift,
                        accumulate,
                    )
                if not accumulate:
                    with warp.frame("6.6.11"):
                        warp.note("accumulate", value="one", stage=accumulator.index)


def copy_scales(mma: Mma, stage: int, count: int) -> Generator[Blocked, None, None]:
    """Copy SFA and SFB of one stage into a scale buffer. Frame 6.6.4.

    The buffer's last MMAs must be complete: PTX orders no copy after an earlier MMA.
    Their commit is the one that gave back the stage of that k-tile, so this waits on
    that stage's empty barrier. With one buffer (CUTLASS's way) nothing is waited for.
    """
    warp, storage, plan = mma.warp, mma.storage, mma.storage.plan
    before = count - plan.scale_buffers
    if plan.scale_buffers > 1 and before >= 0:
        round_of_ring, index = divmod(before, plan.mainloop_stages)
        yield from mbarrier.try_wait(
            warp, storage.ring("mainloop").empty[index], round_of_ring & 1
        )
    buffer = count % plan.scale_buffers
    for columns, source, base in (
        (SF_COLUMNS, storage.address("sfa", stage), plan.tmem.sfa[buffer]),
        (plan.sfb_columns, storage.address("sfb", stage), plan.tmem.sfb[buffer]),
    ):
        descriptor = scale_descriptor(source)
        for k_block in range(K_BLOCKS):
            tcgen05.cp(
                warp,
                mma.taddr + base + k_block * columns,
                descriptor + k_block * SF_BLOCK_STEP,
            )
