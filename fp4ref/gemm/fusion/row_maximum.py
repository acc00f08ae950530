"""row_maximum: the largest magnitude of each column, whose values are handed on.

The bits of magnitudes are ordered as integers, so that the maximum of all warps comes
of ``red.max`` in any order. A NaN is larger than infinity: it stays.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fp4ref.gemm.fusion.arguments import Argument, MaximumResult
from fp4ref.gemm.fusion.node import F32, EpilogueWarp, Region, Steps, Unary, Visit, slot
from fp4ref.hardware import gmem


@dataclass(frozen=True, repr=False)
class RowMaximum(Unary):
    """CUTLASS's ``Sm90RowReduction`` of ``maximum_absolute_value_reduction``.

    Parameters
    ----------
    name
        Among the run's results.
    """

    name: str

    stores = True

    @property
    def arguments(self) -> tuple[Argument, ...]:
        """The maxima."""
        return (MaximumResult(self.name, f"amax_{self.name}", axis=2),)

    @property
    def template(self) -> tuple[str, ...]:
        """The slot."""
        return (slot(f"amax_{self.name}"),)

    def visit(self, v: Visit, *inputs: F32) -> F32:
        """Hand the value on."""
        return inputs[0]

    def reduce(self, e: EpilogueWarp, at: Region, v: Visit) -> Steps:
        """Of 32 columns lane j gets the j-th one's of the warp's rows."""
        value = np.where(v.inside, v.values[self], np.float32(0))
        sizes = np.ascontiguousarray(value).view(np.uint32) & np.uint32(0x7FFFFFFF)
        first = e.params.passed(f"amax_{self.name}")
        stop = min(at.columns.stop, e.params.d_columns)
        for start in range(at.columns.start, stop, len(at.rows)):
            columns = np.arange(start, min(start + len(at.rows), stop))
            largest = sizes[:, columns - at.columns.start].max(axis=0)
            gmem.red_max(e.warp, first + 4 * columns, largest)
        yield from ()
