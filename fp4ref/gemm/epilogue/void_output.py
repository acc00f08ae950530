"""void_output: no D; what the formula's nodes store is all that is left."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fp4ref.gemm.epilogue.epilogue_state import Epilogue, RowOutput
from fp4ref.gemm.fusion.node import F32
from fp4ref.gemm.tile_grid import WorkTile
from fp4ref.trace import Bytes


@dataclass(frozen=True, repr=False)
class VoidOutput(RowOutput):
    """CUTLASS's void ``ElementD``: ``is_destination_supported`` is false."""

    def write(self, e: Epilogue, work: WorkTile, subtile: int, z: F32) -> Bytes:
        """Write nothing."""
        return np.empty((len(z), 0), np.uint8)

    def __repr__(self) -> str:
        """Return the C++ type."""
        return type(self).__name__
