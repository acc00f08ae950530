"""Part 7. staged_tile: one accumulator becomes one tile of D, each warp for itself.

Document 003's phases. A warp has its rows in halves of 128 columns: phase 1 stages the
first one, 1B the second. While a load of 1B is under way, 2A stores rows of the first;
2B stores the second. No warp waits for another: the accumulator's barrier counts them.
"""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from fp4ref.gemm.epilogue.collective import fuse, inside, wait_for_accumulator
from fp4ref.gemm.epilogue.epilogue_state import Epilogue, Staging
from fp4ref.gemm.epilogue.packed import packed
from fp4ref.gemm.epilogue.staged_loop import StagedLoop
from fp4ref.gemm.epilogue.staged_rows import halves_of
from fp4ref.gemm.fusion.callbacks import call, previsit
from fp4ref.gemm.fusion.node import F32, Loaded, Region, Visit
from fp4ref.gemm.pipeline import Stage
from fp4ref.gemm.tile_grid import WorkTile
from fp4ref.hardware import tcgen05, tmem
from fp4ref.hardware.sm import Blocked


def finish_staged_tile(
    e: Epilogue, staging: Staging, loop: StagedLoop, work: WorkTile
) -> Generator[Blocked, None, None]:
    """Turn one accumulator into D. Frames 7.2 to 7.10."""
    plan, halves = e.storage.plan, halves_of(e)
    accumulator, number = yield from wait_for_accumulator(e, work)  # 7.4
    yield from call(e.fusion, "begin", e, work)
    for half in halves:
        yield from staging.acquire(e)
        for i in range(plan.half_subtiles):
            at = region(e, work, half * plan.half_subtiles + i)
            yield from call(e.fusion, "begin_loop", e, at)
            acc, loaded = yield from load_beside_stores(
                e, staging, at, number, half - halves.step, i
            )
            last = half == halves[-1] and i == plan.half_subtiles - 1
            if last and not loop.releases_late:
                release(e, accumulator)
            yield from stage_subtile(
                e, staging, at, Visit(acc, e.params, loaded, inside(e, at)), half, i
            )
        yield from staging.written(e, work, half)
    for i in range(plan.half_subtiles):
        yield from staging.store_part(e, work, halves[-1], i)
    if loop.releases_late:
        release(e, accumulator)
    yield from call(e.fusion, "end", e, work)


def region(e: Epilogue, work: WorkTile, subtile: int) -> Region:
    """Return this warp's rows of a subtile."""
    return Region(work, subtile, e.rows(work, subtile), e.columns(work, subtile))


def load_beside_stores(
    e: Epilogue, staging: Staging, at: Region, number: int, before: int, i: int
) -> Generator[Blocked, None, tuple[F32, Loaded]]:
    """Load a subtile, and meanwhile store rows of the half before. Frame 7.5.

    Returns the accumulators, (32, 32), and what nodes have loaded beside them.
    """
    plan = e.storage.plan
    column = plan.tmem.accumulators[number] + at.subtile * plan.subtile_n
    with e.warp.frame("4.5", "7.5"):
        address = e.taddr + tmem.address(e.lane, column)
        registers = tmem.ld(e.warp, address, "32x32b", plan.subtile_n)
    loaded = yield from previsit(e.fusion, e, at)
    if before >= halves_of(e).start:
        yield from staging.store_part(e, at.work, before, i)
    with e.warp.frame("7.5"):
        yield from tmem.wait_ld(e.warp)
    return registers.words.view(np.float32), loaded


def release(e: Epilogue, accumulator: Stage) -> None:
    """Give the accumulator back to the MMA warp. Frame 7.10."""
    with e.warp.frame("7.10"), accumulator:
        tcgen05.fence_before_thread_sync(e.warp)


def stage_subtile(
    e: Epilogue, staging: Staging, at: Region, visit: Visit, half: int, i: int
) -> Generator[Blocked, None, None]:
    """Compute the formula and stage it. Frames 7.6 and 7.7."""
    z = fuse(e, at, visit)  # (32, 32)
    yield from call(e.fusion, "reduce", e, at, visit)
    yield from staging.put(e, at.work, half, i, packed(z))
    yield from call(e.fusion, "postreduce", e, at, visit)
    yield from call(e.fusion, "end_loop", e, at)
