"""output: what a form of D must offer."""

from __future__ import annotations

from typing import Protocol

from fp4ref.gemm.epilogue.epilogue_state import Epilogue
from fp4ref.gemm.fusion.node import F32
from fp4ref.gemm.tile_grid import WorkTile
from fp4ref.trace import Bytes


class Output(Protocol):
    """One form of D; its ``repr`` is the C++ type."""

    def write(self, e: Epilogue, work: WorkTile, subtile: int, z: F32) -> Bytes:
        """Return the bytes of 32 rows, row by row."""
        ...
