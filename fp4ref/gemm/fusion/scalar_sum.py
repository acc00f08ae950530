"""scalar_sum: the sum of all values, which are handed on.

A thread adds 16 columns, and 16 lanes add these sums. The host adds the blocks, first
along a row, then the rows, then the batches.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fp4ref.gemm.fusion.arguments import BLOCK, Argument, SumResult
from fp4ref.gemm.fusion.node import F32, EpilogueWarp, Region, Steps, Unary, Visit, slot
from fp4ref.gemm.fusion.partial_sums import (
    store_partial,
    sum_blocks,
    sum_of_columns,
    sum_of_lanes,
)


@dataclass(frozen=True, repr=False)
class ScalarSum(Unary):
    """CUTLASS's ``Sm90ScalarReduction`` of ``plus``, without its final reduction.

    Parameters
    ----------
    name
        Among the run's results.
    m_major
        Whether D, and so this, lies in rows of M elements. The plan says it.
    """

    name: str
    m_major: bool = False

    stores = True

    @property
    def arguments(self) -> tuple[Argument, ...]:
        """The partial sums."""
        return (SumResult(self.name, f"sum_{self.name}", True, True, self.m_major),)

    @property
    def template(self) -> tuple[str, ...]:
        """The slot."""
        return slot(f"sum_{self.name}"), *(("true",) if self.m_major else ())

    def visit(self, v: Visit, *inputs: F32) -> F32:
        """Hand the value on."""
        return inputs[0]

    def sum_of_block(self, block: F32) -> F32:
        """Add 16 columns of each 16 lanes: (lanes, 16) gives (lanes,).

        Where D lies in rows of M the lanes are its columns, which are added first.
        """
        if self.m_major:
            return sum_of_columns(sum_of_lanes(block))
        return sum_of_lanes(sum_of_columns(block))

    def reduce(self, e: EpilogueWarp, at: Region, v: Visit) -> Steps:
        """The first of 16 lanes stores the sum of their rows."""
        value = np.where(v.inside, v.values[self], np.float32(0))
        rows = np.arange(at.rows.start, at.rows.stop, BLOCK) // BLOCK
        extents = sum_blocks(e.params.d_rows), sum_blocks(e.params.d_columns)
        sums = e.params.passed(f"sum_{self.name}")
        for first in range(0, len(at.columns), BLOCK):
            where = rows, np.full_like(rows, (at.columns.start + first) // BLOCK)
            total = self.sum_of_block(value[:, first : first + BLOCK])
            store_partial(e, sums, at, extents, where, total[::BLOCK])
        yield from ()
