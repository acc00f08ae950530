"""Part 7. collective: one accumulator becomes one tile of D.

The order of CUTLASS's collective epilogue: for each subtile load, visit the formula,
store. The accumulator is released right after the last load from it, before the last
subtile is stored.
"""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from fp4ref.gemm.epilogue.epilogue_state import Epilogue
from fp4ref.gemm.epilogue.tile_writer import store_subtile
from fp4ref.gemm.fusion.node import F32, Loaded, Visit
from fp4ref.gemm.pipeline import Stage
from fp4ref.gemm.tile_grid import WorkTile
from fp4ref.hardware import tcgen05, tmem
from fp4ref.hardware.sm import Blocked, frame


def finish_tile(e: Epilogue, work: WorkTile) -> Generator[Blocked, None, None]:
    """Turn one accumulator into D. Frames 7.2 to 7.10."""
    warp, subtiles = e.warp, e.storage.plan.subtiles
    with warp.frame("7.4"):
        accumulator = yield from e.accumulator.wait()
        tcgen05.fence_after_thread_sync(warp)
    with warp.frame("7.2"):
        warp.note("accumulator.stage", index=accumulator.index)
    yield from e.fixup.wait(e, work)
    for subtile in range(subtiles):
        acc = yield from load_accumulator(e, accumulator, subtile)  # (32, 32)
        if subtile == subtiles - 1:
            with warp.frame("7.10"), accumulator:
                tcgen05.fence_before_thread_sync(warp)
        acc = e.fixup.load_add(e, work, subtile, acc)
        loaded = yield from previsit(e, e.columns(work, subtile))
        z = fuse(e, work, subtile, acc, loaded)  # (32, 32)
        yield from store_subtile(e, work, subtile, z)


@frame("4.5", "7.5")
def load_accumulator(
    e: Epilogue, accumulator: Stage, subtile: int
) -> Generator[Blocked, None, F32]:
    """Read 32 rows x 32 columns of TMEM. Frames 4.5 and 7.5."""
    plan = e.storage.plan
    column = plan.tmem.accumulators[accumulator.index] + subtile * plan.subtile_n
    address = e.taddr + tmem.address(e.lane, column)
    registers = tmem.ld(e.warp, address, "32x32b", plan.subtile_n)
    yield from tmem.wait_ld(e.warp)
    return registers.words.view(np.float32)


def previsit(e: Epilogue, columns: range) -> Generator[Blocked, None, Loaded]:
    """Load what the formula needs, in the order of its nodes."""
    loaded: Loaded = {}
    for node in e.fusion.walk():
        values = yield from node.previsit(e, columns)
        if values is not None:
            loaded[node] = values
    return loaded


@frame("7.6")
def fuse(e: Epilogue, work: WorkTile, subtile: int, acc: F32, loaded: Loaded) -> F32:
    """Return the formula's value of every element: (32, 32). Frame 7.6.

    What lies outside D becomes +0, so that it cannot reach a block scale.
    """
    rows, columns = e.rows(work), e.columns(work, subtile)
    z = e.fusion.value(Visit(acc, e.params, loaded))
    inside_m = np.arange(rows.start, rows.stop)[:, None] < e.params.m
    inside = inside_m & (np.arange(columns.start, columns.stop) < e.params.n)
    e.warp.note("fusion", subtile=subtile, rows=len(rows), columns=len(columns))
    return np.where(inside, z, np.float32(0))
