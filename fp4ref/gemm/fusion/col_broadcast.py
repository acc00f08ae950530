"""col_broadcast: a number for each row, the same for every column."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np

from fp4ref.gemm.fusion.node import F32, EpilogueWarp, Node, Region, Visit
from fp4ref.hardware import gmem
from fp4ref.hardware.sm import Blocked
from fp4ref.trace import Range


@dataclass(frozen=True, repr=False)
class ColBroadcast(Node):
    """CUTLASS's ``Sm90ColBroadcast`` of the bias, where D lies in rows of M."""

    def previsit(
        self, e: EpilogueWarp, at: Region
    ) -> Generator[Blocked, None, F32 | None]:
        """Read the numbers of 32 rows; rows beyond D have 0: (32, 1)."""
        bias = np.zeros((len(at.rows), 1), np.float32)
        count = min(at.rows.stop, e.params.d_rows) - at.rows.start
        if count > 0:
            where = Range("gmem", e.params.bias + 4 * at.rows.start, 4 * count)
            bias[:count, 0] = gmem.ld(e.warp, where)[0].view("<f4")
        yield from ()
        return bias

    def visit(self, v: Visit, *inputs: F32) -> F32:
        """Return what was read."""
        return v.loaded[self]
