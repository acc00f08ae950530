"""convert: D in an element type, without scales."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fp4ref.gemm.epilogue.epilogue_state import Epilogue, RowOutput
from fp4ref.gemm.fusion.node import F32
from fp4ref.gemm.tile_grid import WorkTile
from fp4ref.numerics.elements import ELEMENTS
from fp4ref.trace import Bytes


@dataclass(frozen=True, repr=False)
class Convert(RowOutput):
    """Each number is rounded on its own.

    Parameters
    ----------
    element
        Name of D's format.
    """

    element: str

    def write(self, e: Epilogue, work: WorkTile, subtile: int, z: F32) -> Bytes:
        """Return the bytes of 32 rows: (32, 32 * size). Frame 7.7."""
        codes = ELEMENTS[self.element].encode(z)
        return np.ascontiguousarray(codes).view(np.uint8)

    def __repr__(self) -> str:
        """Return the C++ type."""
        return f"Convert<{self.element.upper()}>"
