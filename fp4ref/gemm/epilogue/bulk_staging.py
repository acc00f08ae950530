"""bulk_staging: rows of 272 bytes, each of which goes to D by a bulk copy.

One thread issues all of a warp's copies, 32 for a half.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

from fp4ref.gemm.epilogue.epilogue_state import Epilogue
from fp4ref.gemm.epilogue.padded_staging import PaddedStaging
from fp4ref.gemm.epilogue.row_addresses import d_addresses, row_nbytes, rows_inside
from fp4ref.gemm.epilogue.staged_rows import half_buffer
from fp4ref.gemm.epilogue.store_group import pending_halves
from fp4ref.gemm.tile_grid import WorkTile
from fp4ref.hardware import bulk_copy, smem, tma
from fp4ref.hardware.sm import Blocked


@dataclass(frozen=True, repr=False)
class BulkStaging(PaddedStaging):
    """Phases 2A and 2B are a bulk copy of each row, in a group of the half."""

    def acquire(self, e: Epilogue) -> Generator[Blocked, None, None]:
        """Wait until the copies of this half's last rows have read them."""
        yield from tma.wait_group(e.warp, pending_halves(e), read=True)

    def written(
        self, e: Epilogue, work: WorkTile, half: int
    ) -> Generator[Blocked, None, None]:
        """Copy each row, and close the group. Frame 7.9."""
        yield from ()
        with e.warp.frame("7.9"):
            smem.fence_proxy_async(e.warp)
            nbytes, buffer = row_nbytes(e, work, half), half_buffer(e, half)
            for row, address in enumerate(d_addresses(e, work, half)):
                if row < rows_inside(e, work) and nbytes:
                    source = buffer + row * self.row_nbytes
                    bulk_copy.store(e.warp, int(address), source, nbytes)
            tma.commit_group(e.warp)

    def store_part(
        self, e: Epilogue, work: WorkTile, half: int, i: int
    ) -> Generator[Blocked, None, None]:
        """Do nothing: the copies are under way."""
        yield from ()

    def tail(self, e: Epilogue) -> Generator[Blocked, None, None]:
        """Wait until every copy has read its row."""
        yield from tma.wait_group(e.warp, 0, read=True)

    def __repr__(self) -> str:
        """Return the C++ type."""
        return f"BulkStaging<{self.row_nbytes}>"
