"""Part 7. tile_writer: D through shared memory, by TMA."""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from fp4ref.gemm.epilogue.epilogue_state import Epilogue
from fp4ref.gemm.fusion.node import F32
from fp4ref.gemm.partition import subtile_coords
from fp4ref.gemm.plan.warps import EPILOGUE_THREADS, NamedBarrierId
from fp4ref.gemm.tile_grid import WorkTile
from fp4ref.hardware import named_barrier, smem, tma
from fp4ref.hardware.sm import Blocked, frame
from fp4ref.layout import swizzled_offsets
from fp4ref.trace import Bytes


def store_subtile(
    e: Epilogue, work: WorkTile, subtile: int, z: F32
) -> Generator[Blocked, None, None]:
    """Write one subtile of D through shared memory, and SFD directly. Frame 7.9."""
    rows = e.output.write(e, work, subtile, z)  # (32, bytes of a row)
    block = np.empty(rows.size, np.uint8)
    block[swizzled_offsets(e.storage.plan.d_swizzle, *rows.shape)] = rows
    yield from _store(e, work, subtile, block)
    e.d_stage = (e.d_stage + 1) % e.storage.plan.d_stages


@frame("7.9")
def _store(
    e: Epilogue, work: WorkTile, subtile: int, block: Bytes
) -> Generator[Blocked, None, None]:
    """Put this warp's rows into the stage; one warp sends all of it."""
    warp, plan = e.warp, e.storage.plan
    buffer = e.storage.address("d_subtile", e.d_stage)
    barrier = NamedBarrierId.EPILOGUE.value
    if e.issues_stores:
        yield from tma.wait_group(warp, plan.d_stages - 1, read=True)
    yield from named_barrier.sync(warp, barrier, EPILOGUE_THREADS)
    smem.st(warp, buffer + e.lane * plan.d_row_nbytes, block)
    smem.fence_proxy_async(warp)
    yield from named_barrier.sync(warp, barrier, EPILOGUE_THREADS)
    if e.issues_stores:
        for part in range(plan.column_parts):
            coords = subtile_coords(work, subtile, plan, part)
            rows = buffer + part * plan.tile_m * plan.d_row_nbytes
            tma.store(warp, e.params.d, coords, rows)
        tma.commit_group(warp)
