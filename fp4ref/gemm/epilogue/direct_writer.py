"""Part 7. direct_writer: a subtile is left without shared memory.

No TMA store reads what is written here, so there is no stage to wait for, no fence and
no barrier of the epilogue warps.
"""

from __future__ import annotations

from collections.abc import Generator

from fp4ref.gemm.epilogue.epilogue_state import Epilogue
from fp4ref.gemm.fusion.callbacks import call
from fp4ref.gemm.fusion.node import F32, Region, Visit
from fp4ref.hardware.sm import Blocked


def leave_subtile(
    e: Epilogue, at: Region, visit: Visit, z: F32
) -> Generator[Blocked, None, None]:
    """Write what this warp has of D, if there is one, and what its nodes store."""
    e.output.write(e, at.work, at.subtile, z)
    yield from call(e.fusion, "postreduce", e, at, visit)
