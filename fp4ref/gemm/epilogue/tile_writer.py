"""Part 7. tile_writer: D through shared memory, by TMA."""

from __future__ import annotations

from collections.abc import Generator

from fp4ref.gemm.epilogue.epilogue_state import Epilogue
from fp4ref.gemm.fusion.callbacks import call
from fp4ref.gemm.fusion.node import F32, Region, Visit
from fp4ref.gemm.partition import subtile_coords
from fp4ref.gemm.plan.warps import EPILOGUE_THREADS, NamedBarrierId
from fp4ref.hardware import named_barrier, smem, tma
from fp4ref.hardware.sm import Blocked, frame
from fp4ref.trace import Bytes


def store_subtile(
    e: Epilogue, at: Region, visit: Visit, z: F32
) -> Generator[Blocked, None, None]:
    """Write one subtile of D through shared memory, and SFD directly. Frame 7.9."""
    rows = e.output.write(e, at.work, at.subtile, z)  # (32, bytes of a row)
    yield from _store(e, at, visit, rows)
    e.d_stage = (e.d_stage + 1) % e.storage.plan.d_stages


@frame("7.9")
def _store(
    e: Epilogue, at: Region, visit: Visit, rows: Bytes
) -> Generator[Blocked, None, None]:
    """Put this warp's rows into the stage; one warp sends all of it."""
    warp, plan = e.warp, e.storage.plan
    buffer = e.storage.address("d_subtile", e.d_stage)
    barrier = NamedBarrierId.EPILOGUE.value
    if e.issues_stores:
        yield from tma.wait_group(warp, plan.d_stages - 1, read=True)
    yield from named_barrier.sync(warp, barrier, EPILOGUE_THREADS)
    e.output.put(e, buffer + e.lane * plan.d_row_nbytes, rows)
    yield from call(e.fusion, "postreduce", e, at, visit)
    smem.fence_proxy_async(warp)
    yield from named_barrier.sync(warp, barrier, EPILOGUE_THREADS)
    if e.issues_stores and e.is_inside(at.work):
        for box in range(plan.subtile_boxes):
            coords = subtile_coords(at.work, at.subtile, plan, box)
            source = buffer + box * plan.subtile_box_rows * plan.d_row_nbytes
            tma.store(warp, e.params.d, coords, source)
    yield from call(e.fusion, "tma_store", e, at)
    if e.issues_stores:
        tma.commit_group(warp)
