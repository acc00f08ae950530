"""Part 7. tile_writer: D through shared memory, by TMA."""

from __future__ import annotations

from collections.abc import Generator

from fp4ref.gemm.epilogue.epilogue_state import Epilogue
from fp4ref.gemm.epilogue.store_pipeline import (
    acquire,
    advance_store,
    release_c,
    store_buffer,
    synchronize,
)
from fp4ref.gemm.fusion.callbacks import call
from fp4ref.gemm.fusion.node import F32, Region, Visit
from fp4ref.gemm.partition import subtile_coords
from fp4ref.hardware import smem, tma
from fp4ref.hardware.sm import Blocked, frame
from fp4ref.trace import Bytes


def store_subtile(
    e: Epilogue, at: Region, visit: Visit, z: F32
) -> Generator[Blocked, None, None]:
    """Write one subtile of D to shared memory, and SFD directly. Frame 7.9."""
    rows = e.output.write(e, at.work, at.subtile, z)  # (32, bytes of a row)
    if not e.storage.plan.acquires_ahead:
        yield from acquire(e)
    yield from _put(e, at, visit, rows)
    if not e.storage.plan.delay_tma_store:
        yield from send_subtile(e, at)


@frame("7.9")
def _put(
    e: Epilogue, at: Region, visit: Visit, rows: Bytes
) -> Generator[Blocked, None, None]:
    """Put this warp's rows into the stage, visible to TMA."""
    first_row = store_buffer(e) + e.lane * e.storage.plan.d_box_row_nbytes
    e.output.put(e, first_row, rows)
    yield from call(e.fusion, "postreduce", e, at, visit)
    smem.fence_proxy_async(e.warp)


@frame("7.9")
def send_subtile(e: Epilogue, at: Region) -> Generator[Blocked, None, None]:
    """Store a stage of D: one warp sends all of it."""
    warp, plan = e.warp, e.storage.plan
    assert e.params.d is not None, "a kernel without D has no stage of it"
    buffer = store_buffer(e)
    yield from synchronize(e)
    if e.issues_stores and e.is_inside(at.work):
        for box in range(plan.d_boxes):
            coords = subtile_coords(at.work, at.subtile, plan, box, plan.d_box_n)
            source = buffer + box * plan.subtile_box_rows * plan.d_box_row_nbytes
            tma.store(warp, e.params.d, coords, source)
    yield from call(e.fusion, "tma_store", e, at)
    if e.issues_stores:
        tma.commit_group(warp)
    advance_store(e)
    if plan.acquires_ahead:
        yield from acquire(e)
        release_c(e)
