"""stmatrix_writer: D in a 16-bit element type, stored as matrices of 8 x 8."""

from __future__ import annotations

from dataclasses import dataclass

from fp4ref.gemm.epilogue.convert import Convert
from fp4ref.gemm.epilogue.epilogue_state import Epilogue
from fp4ref.gemm.epilogue.fragment import matrix_rows
from fp4ref.hardware import smem
from fp4ref.trace import Bytes


@dataclass(frozen=True, repr=False)
class StmatrixWriter(Convert):
    """Each number is rounded on its own, and pairs go to the rows of a matrix."""

    def put(self, e: Epilogue, address: int, rows: Bytes) -> None:
        """Write 32 rows to shared memory, swizzled, by ``stmatrix.x4``. Frame 7.7."""
        for offsets, each in matrix_rows(e, rows):
            smem.stmatrix(e.warp, [address + offset for offset in offsets], each)

    def __repr__(self) -> str:
        """Return the C++ type."""
        return f"StmatrixWriter<{self.element.upper()}>"
