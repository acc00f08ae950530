"""in_smem: the accumulator is written to shared memory, and the formula reads it there.

Each warp has 32 rows of 32 numbers, swizzled like a tile of TMA, so that neither the
rows nor the columns of it meet in one bank. A thread that reads a column has a row of
the transpose: that is how a tile is stored across its accumulator's rows.
"""

from __future__ import annotations

import numpy as np

from fp4ref.gemm.epilogue.epilogue_state import Epilogue
from fp4ref.gemm.fusion.node import F32
from fp4ref.gemm.plan.warps import WARP_THREADS
from fp4ref.hardware import smem
from fp4ref.layout import SwizzleMode, swizzled_offsets

ROW_NBYTES = 128


class InSmem:
    """A thread reads a row of what its warp has written, or a column."""

    @staticmethod
    def place(e: Epilogue, acc: F32) -> F32:
        """Write the warp's rows, and read those of D: (32, 32)."""
        buffer = e.storage.address("element_wise", 0) + e.lane * ROW_NBYTES
        at = swizzled_offsets(SwizzleMode.B128, WARP_THREADS, ROW_NBYTES)
        block = np.empty(acc.nbytes, np.uint8)
        block[at] = np.ascontiguousarray(acc).view(np.uint8)
        smem.st(e.warp, buffer, block)
        rows = smem.ld(e.warp, buffer, block.size)[at].view("<f4")
        return rows.T if e.storage.plan.transposes else rows
