"""col_sum: the sum of each row, whose values are handed on.

A thread adds 32 columns, the first ones first, and the host adds these sums in the same
order, then the batches.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fp4ref.gemm.fusion.arguments import BLOCK, Argument, SumResult
from fp4ref.gemm.fusion.node import F32, EpilogueWarp, Region, Steps, Unary, Visit, slot
from fp4ref.gemm.fusion.partial_sums import store_partial, sum_of_columns


@dataclass(frozen=True, repr=False)
class ColSum(Unary):
    """CUTLASS's ``Sm90ColReduction`` of ``plus``, without its final reduction.

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
        return (SumResult(self.name, f"sum_{self.name}", rows=False, columns=True),)

    @property
    def template(self) -> tuple[str, ...]:
        """The slot."""
        return (slot(f"sum_{self.name}"),)

    def visit(self, v: Visit, *inputs: F32) -> F32:
        """Hand the value on."""
        return inputs[0]

    def reduce(self, e: EpilogueWarp, at: Region, v: Visit) -> Steps:
        """Each thread stores the sum of its row."""
        value = np.where(v.inside, v.values[self], np.float32(0))
        rows = np.arange(at.rows.start, at.rows.stop)
        columns = np.full_like(rows, at.columns.start // BLOCK)
        extents = e.params.d_rows, -(-e.params.d_columns // BLOCK)
        sums = e.params.passed(f"sum_{self.name}")
        store_partial(e, sums, at, extents, (rows, columns), sum_of_columns(value))
        yield from ()
