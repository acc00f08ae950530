"""no_staging: each thread stores its row of D from registers.

Neighbouring threads store to different rows, 16 bytes at a time: nothing is coalesced.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np

from fp4ref.gemm.epilogue.epilogue_state import Epilogue
from fp4ref.gemm.epilogue.row_addresses import d_addresses, row_nbytes, rows_inside
from fp4ref.gemm.tile_grid import WorkTile
from fp4ref.hardware import gmem
from fp4ref.hardware.sm import Blocked
from fp4ref.trace import Bytes

CHUNK_NBYTES = 16


@dataclass(frozen=True, repr=False)
class NoStaging:
    """Phases 1 and 1B store; there are no others."""

    def acquire(self, e: Epilogue) -> Generator[Blocked, None, None]:
        """Wait for nothing."""
        yield from ()

    def put(
        self, e: Epilogue, work: WorkTile, half: int, i: int, rows: Bytes
    ) -> Generator[Blocked, None, None]:
        """Store subtile `i` of a half, each thread its row. Frame 7.9."""
        yield from ()
        with e.warp.frame("7.9"):
            inside = np.arange(len(rows)) < rows_inside(e, work)
            addresses, first = d_addresses(e, work, half), i * rows.shape[1]
            for chunk in range(0, rows.shape[1], CHUNK_NBYTES):
                if inside.any() and first + chunk < row_nbytes(e, work, half):
                    part = rows[inside, chunk : chunk + CHUNK_NBYTES]
                    gmem.st(e.warp, addresses[inside] + first + chunk, part)

    def written(
        self, e: Epilogue, work: WorkTile, half: int
    ) -> Generator[Blocked, None, None]:
        """Do nothing: it is in global memory."""
        yield from ()

    def store_part(
        self, e: Epilogue, work: WorkTile, half: int, i: int
    ) -> Generator[Blocked, None, None]:
        """Do nothing: it is stored."""
        yield from ()

    def tail(self, e: Epilogue) -> Generator[Blocked, None, None]:
        """Wait for nothing."""
        yield from ()

    def __repr__(self) -> str:
        """Return the C++ type."""
        return "NoStaging"
