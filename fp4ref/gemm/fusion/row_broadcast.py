"""row_broadcast: a number for each column, the same for every row."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np

from fp4ref.gemm.fusion.node import F32, EpilogueWarp, Node, Region, Visit
from fp4ref.hardware import gmem
from fp4ref.hardware.sm import Blocked
from fp4ref.trace import Range


@dataclass(frozen=True, repr=False)
class RowBroadcast(Node):
    """CUTLASS's ``Sm90RowBroadcast`` of the bias."""

    def previsit(
        self, e: EpilogueWarp, at: Region
    ) -> Generator[Blocked, None, F32 | None]:
        """Read the numbers of 32 columns; columns beyond D are 0: (32,)."""
        bias = np.zeros(len(at.columns), np.float32)
        count = min(at.columns.stop, e.params.d_columns) - at.columns.start
        if count > 0:
            where = Range("gmem", e.params.bias + 4 * at.columns.start, 4 * count)
            bias[:count] = gmem.ld(e.warp, where)[0].view("<f4")
        yield from ()
        return bias

    def visit(self, v: Visit, *inputs: F32) -> F32:
        """Return what was read."""
        return v.loaded[self]
