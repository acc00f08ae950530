"""row_sum: the sum of each column, whose values are handed on.

The lanes of a warp add 32 rows as a butterfly, and the host adds these sums, the first
rows first, then the batches.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fp4ref.gemm.fusion.arguments import BLOCK, Argument, SumResult
from fp4ref.gemm.fusion.node import F32, EpilogueWarp, Region, Steps, Unary, Visit, slot
from fp4ref.gemm.fusion.partial_sums import store_partial, sum_of_lanes


@dataclass(frozen=True, repr=False)
class RowSum(Unary):
    """CUTLASS's ``Sm90RowReduction`` of ``plus``, without its final reduction.

    Parameters
    ----------
    name
        Among the run's results.
    """

    name: str

    stores = True

    @property
    def arguments(self) -> tuple[Argument, ...]:
        """The partial sums."""
        return (SumResult(self.name, f"sum_{self.name}", rows=True, columns=False),)

    @property
    def template(self) -> tuple[str, ...]:
        """The slot."""
        return (slot(f"sum_{self.name}"),)

    def visit(self, v: Visit, *inputs: F32) -> F32:
        """Hand the value on."""
        return inputs[0]

    def reduce(self, e: EpilogueWarp, at: Region, v: Visit) -> Steps:
        """Lane j stores column j's sum of the warp's rows."""
        value = np.where(v.inside, v.values[self], np.float32(0))
        columns = np.arange(at.columns.start, at.columns.stop)
        rows = np.full_like(columns, at.rows.start // BLOCK)
        extents = -(-e.params.d_rows // BLOCK), e.params.d_columns
        sums = e.params.passed(f"sum_{self.name}")
        store_partial(e, sums, at, extents, (rows, columns), sum_of_lanes(value))
        yield from ()
