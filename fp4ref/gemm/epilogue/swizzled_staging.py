"""swizzled_staging: two panels of swizzled rows, stored by two tensor copies.

A box with the 128-byte swizzle has rows of 128 bytes at most, 64 columns of BF16: a
half is two of them.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np

from fp4ref.gemm.epilogue.epilogue_state import Epilogue
from fp4ref.gemm.epilogue.staged_rows import half_buffer
from fp4ref.gemm.epilogue.store_group import pending_halves
from fp4ref.gemm.plan.warps import WARP_THREADS
from fp4ref.gemm.tile_grid import WorkTile
from fp4ref.hardware import smem, tma
from fp4ref.hardware.sm import Blocked
from fp4ref.layout import PANEL_NBYTES, SwizzleMode, swizzled_offsets
from fp4ref.trace import Bytes

PANEL = WARP_THREADS * PANEL_NBYTES
"""Bytes of a panel."""
CHUNK_NBYTES = 16


@dataclass(frozen=True, repr=False)
class SwizzledStaging:
    """Phases 2A and 2B are a tensor copy of each panel, in a group of the half.

    Parameters
    ----------
    row_nbytes
        Without padding.
    """

    row_nbytes: int

    def acquire(self, e: Epilogue) -> Generator[Blocked, None, None]:
        """Wait until the copies of this half's last rows have read them."""
        yield from tma.wait_group(e.warp, pending_halves(e), read=True)

    def put(
        self, e: Epilogue, work: WorkTile, half: int, i: int, rows: Bytes
    ) -> Generator[Blocked, None, None]:
        """Write subtile `i` of a half, each thread its row. Frame 7.7."""
        yield from ()
        with e.warp.frame("7.7"):
            panel, first = divmod(i * rows.shape[1], PANEL_NBYTES)
            buffer = half_buffer(e, half) + panel * PANEL
            at = swizzled_offsets(SwizzleMode.B128, WARP_THREADS, PANEL_NBYTES)
            for chunk in range(0, rows.shape[1], CHUNK_NBYTES):
                part = rows[:, chunk : chunk + CHUNK_NBYTES]
                offsets = np.asarray(at[:, first + chunk], np.int64)
                smem.st_each(e.warp, buffer + offsets, part)

    def written(
        self, e: Epilogue, work: WorkTile, half: int
    ) -> Generator[Blocked, None, None]:
        """Copy both panels, and close the group. Frame 7.9."""
        yield from ()
        with e.warp.frame("7.9"):
            plan = e.storage.plan
            assert e.params.d is not None, "what is staged is stored"
            smem.fence_proxy_async(e.warp)
            if e.is_inside(work):
                row = e.rows(work, 0).start
                first = e.columns(work, half * plan.half_subtiles).start
                for panel in range(self.row_nbytes // PANEL_NBYTES):
                    corner = first + panel * plan.d_box_n, row, work.l
                    source = half_buffer(e, half) + panel * PANEL
                    tma.store(e.warp, e.params.d, corner, source)
            tma.commit_group(e.warp)

    def store_part(
        self, e: Epilogue, work: WorkTile, half: int, i: int
    ) -> Generator[Blocked, None, None]:
        """Do nothing: the copies are under way."""
        yield from ()

    def tail(self, e: Epilogue) -> Generator[Blocked, None, None]:
        """Wait until every copy has read its panel."""
        yield from tma.wait_group(e.warp, 0, read=True)

    def __repr__(self) -> str:
        """Return the C++ type."""
        return f"SwizzledStaging<{self.row_nbytes}>"
