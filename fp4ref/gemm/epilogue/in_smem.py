"""in_smem: the accumulator is written to shared memory, and the formula reads it there.

Each warp has 32 rows, swizzled like a tile of TMA in panels of 32 numbers, so that
neither the rows nor the columns of it meet in one bank. A thread that reads a column of
32 has a row of the transpose: that is how a tile is stored across its accumulator's
rows.
"""

from __future__ import annotations

import numpy as np

from fp4ref.gemm.epilogue.epilogue_state import Epilogue
from fp4ref.gemm.fusion.node import F32
from fp4ref.gemm.plan.warps import WARP_THREADS
from fp4ref.hardware import smem
from fp4ref.layout import PANEL_NBYTES, SwizzleMode, swizzled_offsets


class InSmem:
    """A thread reads a row of what its warp has written, or a column."""

    @staticmethod
    def place(e: Epilogue, acc: F32) -> F32:
        """Write the warp's rows, and read those of D: (32, columns)."""
        row_nbytes = min(4 * acc.shape[1], PANEL_NBYTES)
        buffer = e.storage.address("element_wise", 0) + e.lane * row_nbytes
        at = swizzled_offsets(SwizzleMode.of_span(row_nbytes), WARP_THREADS, row_nbytes)
        raw = np.ascontiguousarray(acc).view(np.uint8)
        panels = range(0, raw.shape[1], row_nbytes)
        for first in panels:
            block = np.empty(at.size, np.uint8)
            block[at] = raw[:, first : first + row_nbytes]
            smem.st(e.warp, buffer + first * e.storage.plan.lanes, block)
        starts = [buffer + first * e.storage.plan.lanes for first in panels]
        read = [smem.ld(e.warp, start, at.size)[at] for start in starts]
        rows = np.hstack(read).view("<f4")
        return rows.T if e.storage.plan.transposes else rows
