"""row_sum: the sum of each column, whose values are handed on.

The lanes of a warp add 16 rows, and the host adds these sums, the first rows first,
then the batches.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fp4ref.gemm.fusion.arguments import BLOCK, Argument, SumResult
from fp4ref.gemm.fusion.node import F32, EpilogueWarp, Region, Steps, Unary, Visit, slot
from fp4ref.gemm.fusion.partial_sums import store_partial, sum_blocks, sum_of_lanes


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
        """Of 16 columns lane j stores the j-th one's sum of its 16 lanes."""
        value = sum_of_lanes(np.where(v.inside, v.values[self], np.float32(0)))
        lanes = np.arange(len(at.rows))
        rows = (at.rows.start + lanes) // BLOCK
        extents = sum_blocks(e.params.d_rows), e.params.d_columns
        sums = e.params.passed(f"sum_{self.name}")
        for first in range(0, len(at.columns), BLOCK):
            column = first + lanes % BLOCK
            where = rows, at.columns.start + column
            store_partial(e, sums, at, extents, where, value[lanes, column])
        yield from ()
