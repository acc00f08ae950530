"""in_registers: the formula is computed where tcgen05.ld has put the accumulator."""

from __future__ import annotations

from fp4ref.gemm.epilogue.epilogue_state import Epilogue
from fp4ref.gemm.fusion.node import F32


class InRegisters:
    """Each thread has a row of the accumulator, which is a row of D."""

    @staticmethod
    def place(e: Epilogue, acc: F32) -> F32:
        """Leave the rows where they are."""
        return acc
