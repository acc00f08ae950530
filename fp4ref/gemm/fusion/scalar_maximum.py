"""scalar_maximum: the largest magnitude of all values, which are handed on.

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
class ScalarMaximum(Unary):
    """CUTLASS's ``Sm90ScalarReduction`` of ``maximum_absolute_value_reduction``.

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
        return (MaximumResult(self.name, f"amax_{self.name}", axis=None),)

    @property
    def template(self) -> tuple[str, ...]:
        """The slot."""
        return (slot(f"amax_{self.name}"),)

    def visit(self, v: Visit, *inputs: F32) -> F32:
        """Hand the value on."""
        return inputs[0]

    def reduce(self, e: EpilogueWarp, at: Region, v: Visit) -> Steps:
        """The warp's maximum goes into the one number."""
        value = np.where(v.inside, v.values[self], np.float32(0))
        sizes = np.ascontiguousarray(value).view(np.uint32) & np.uint32(0x7FFFFFFF)
        first = e.params.passed(f"amax_{self.name}")
        largest = np.array([sizes.max()], np.uint32)
        gmem.red_max(e.warp, np.array([first]), largest)
        yield from ()
