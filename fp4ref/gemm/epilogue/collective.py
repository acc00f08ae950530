"""Part 7. collective: one accumulator becomes one tile of D.

The order of CUTLASS's collective epilogue: for each subtile load, visit the formula,
store, with the callbacks of the formula's nodes around each. The accumulator is
released right after the last load that the next but one tile waits for, before that
subtile is stored.
"""

from __future__ import annotations

from collections.abc import Generator
from functools import cache

import numpy as np
from numpy.typing import NDArray

from fp4ref.gemm.accumulator_stage import consumed_accumulator
from fp4ref.gemm.epilogue.direct_writer import leave_subtile
from fp4ref.gemm.epilogue.epilogue_state import Epilogue
from fp4ref.gemm.epilogue.fragment import load_fragment
from fp4ref.gemm.epilogue.store_pipeline import load_wait_state, synchronize
from fp4ref.gemm.epilogue.subtile_order import subtile_order
from fp4ref.gemm.epilogue.tile_writer import send_subtile, store_subtile
from fp4ref.gemm.fusion.callbacks import call, previsit
from fp4ref.gemm.fusion.node import F32, Region, Visit
from fp4ref.gemm.pipeline import Stage
from fp4ref.gemm.tile_grid import WorkTile
from fp4ref.hardware import tcgen05, tmem
from fp4ref.hardware.sm import Blocked, frame


def finish_tile(e: Epilogue, work: WorkTile) -> Generator[Blocked, None, None]:
    """Turn one accumulator into D. Frames 7.2 to 7.10."""
    plan, before = e.storage.plan, None
    accumulator, number = yield from wait_for_accumulator(e, work)
    e.load_wait = load_wait_state(e.store)
    yield from call(e.fusion, "begin", e, work)
    for i, subtile in enumerate(subtile_order(plan, number)):
        at = Region(work, subtile, e.rows(work, subtile), e.columns(work, subtile))
        yield from call(e.fusion, "begin_loop", e, at)
        acc = yield from take_subtile(e, work, accumulator, number, i)  # (32, 32)
        acc = e.element_wise.place(e, acc)
        loaded = yield from previsit(e.fusion, e, at)
        if plan.waits_for_c:
            yield from synchronize(e)
        visit = Visit(acc, e.params, loaded, inside(e, at))
        z = fuse(e, at, visit)  # (32, 32)
        if before and plan.delay_tma_store:
            yield from send_subtile(e, before)
        yield from call(e.fusion, "reduce", e, at, visit)
        write = store_subtile if plan.stages_d else leave_subtile
        yield from write(e, at, visit, z)
        yield from call(e.fusion, "end_loop", e, at)
        before = at
    if before and plan.delay_tma_store:
        yield from send_subtile(e, before)
    yield from call(e.fusion, "end", e, work)


def wait_for_accumulator(
    e: Epilogue, work: WorkTile
) -> Generator[Blocked, None, tuple[Stage, int]]:
    """Wait for a stage that holds a tile, and for its splits; give its number too."""
    warp = e.warp
    with warp.frame("7.4"):
        accumulator = yield from e.accumulator.wait()
        tcgen05.fence_after_thread_sync(warp)
    with warp.frame("7.2"):
        number = consumed_accumulator(e.storage.plan, accumulator)
        warp.note("accumulator.stage", index=number)
    yield from e.fixup.wait(e, work)
    return accumulator, number


def take_subtile(
    e: Epilogue, work: WorkTile, accumulator: Stage, number: int, i: int
) -> Generator[Blocked, None, F32]:
    """Take the i-th subtile of an accumulator and its other splits: (32, 32)."""
    warp, plan = e.warp, e.storage.plan
    subtile = subtile_order(plan, number)[i]
    acc = yield from load_accumulator(e, number, subtile)
    if i == plan.subtiles_to_release - 1:
        with warp.frame("7.10"), accumulator:
            tcgen05.fence_before_thread_sync(warp)
    return e.fixup.load_add(e, work, subtile, acc)


@frame("4.5", "7.5")
def load_accumulator(
    e: Epilogue, accumulator: int, subtile: int
) -> Generator[Blocked, None, F32]:
    """Read 32 rows x 32 columns of TMEM. Frames 4.5 and 7.5."""
    plan = e.storage.plan
    column = plan.tmem.accumulators[accumulator] + subtile * plan.subtile_n
    address = e.taddr + tmem.address(e.lane, column)
    acc: F32 = yield from load_fragment(e, address)
    return acc


def inside(e: Epilogue, at: Region) -> NDArray[np.bool_]:
    """Return which elements of a region are of D: (32, 32)."""
    if at.rows.stop <= e.params.d_rows and at.columns.stop <= e.params.d_columns:
        return all_inside(len(at.rows), len(at.columns))
    inside_m = np.arange(at.rows.start, at.rows.stop)[:, None] < e.params.d_rows
    inside_n = np.arange(at.columns.start, at.columns.stop) < e.params.d_columns
    return inside_m & inside_n


@cache
def all_inside(rows: int, columns: int) -> NDArray[np.bool_]:
    """Return that all elements of a region are of D."""
    found = np.ones((rows, columns), np.bool_)
    found.flags.writeable = False
    return found


@frame("7.6")
def fuse(e: Epilogue, at: Region, visit: Visit) -> F32:
    """Return the formula's value of every element: (32, 32). Frame 7.6.

    What lies outside D becomes +0, so that it cannot reach a block scale.
    """
    z = e.fusion.value(visit)
    if e.params.probe:
        e.params.probe(at, visit)
    e.warp.note(
        "fusion", subtile=at.subtile, rows=len(at.rows), columns=len(at.columns)
    )
    return np.where(visit.inside, z, np.float32(0))
