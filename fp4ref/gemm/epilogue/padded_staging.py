"""padded_staging: rows of 272 bytes, read back and stored by the whole warp.

Sixteen bytes of padding let the rows of eight threads, which write together, begin in
different banks. A row is read by the warp at once, eight bytes a thread.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np

from fp4ref.gemm.epilogue.epilogue_state import Epilogue
from fp4ref.gemm.epilogue.row_addresses import d_addresses, row_nbytes, rows_inside
from fp4ref.gemm.epilogue.staged_rows import half_buffer
from fp4ref.gemm.plan.warps import WARP_THREADS
from fp4ref.gemm.tile_grid import WorkTile
from fp4ref.hardware import smem, vec2
from fp4ref.hardware.sm import Blocked
from fp4ref.trace import Bytes

CHUNK_NBYTES = 16


@dataclass(frozen=True, repr=False)
class PaddedStaging:
    """Phases 1 and 1B write the rows, 2A and 2B store them.

    Parameters
    ----------
    row_nbytes
        With the padding.
    """

    row_nbytes: int

    def acquire(self, e: Epilogue) -> Generator[Blocked, None, None]:
        """Every lane has read what the half held before: the warp runs in step."""
        yield from ()

    def put(
        self, e: Epilogue, work: WorkTile, half: int, i: int, rows: Bytes
    ) -> Generator[Blocked, None, None]:
        """Write subtile `i` of a half, each thread its row. Frame 7.7."""
        yield from ()
        with e.warp.frame("7.7"):
            first = half_buffer(e, half) + i * rows.shape[1]
            starts = first + np.arange(WARP_THREADS, dtype=np.int64) * self.row_nbytes
            for chunk in range(0, rows.shape[1], CHUNK_NBYTES):
                part = rows[:, chunk : chunk + CHUNK_NBYTES]
                smem.st_each(e.warp, starts + chunk, part)

    def written(
        self, e: Epilogue, work: WorkTile, half: int
    ) -> Generator[Blocked, None, None]:
        """Go on when every lane has written its row."""
        yield from ()

    def store_part(
        self, e: Epilogue, work: WorkTile, half: int, i: int
    ) -> Generator[Blocked, None, None]:
        """Store as many rows of a half as come with one of its subtiles. Frame 7.9."""
        yield from ()
        with e.warp.frame("7.9"):
            count = WARP_THREADS // e.storage.plan.half_subtiles
            addresses, buffer = d_addresses(e, work, half), half_buffer(e, half)
            of_lane = np.arange(WARP_THREADS, dtype=np.int64) * vec2.NBYTES
            stores = of_lane < row_nbytes(e, work, half)
            for row in range(i * count, (i + 1) * count):
                words = vec2.ld_shared(e.warp, buffer + row * self.row_nbytes)
                if row < rows_inside(e, work) and stores.any():
                    at = addresses[row] + of_lane[stores]
                    vec2.st_global(e.warp, at, words[stores])

    def tail(self, e: Epilogue) -> Generator[Blocked, None, None]:
        """Wait for nothing: the rows have been read by the warp itself."""
        yield from ()

    def __repr__(self) -> str:
        """Return the C++ type."""
        return f"PaddedStaging<{self.row_nbytes}>"
