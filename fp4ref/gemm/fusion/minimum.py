"""minimum: the smaller of a and b; a NaN wins."""

from __future__ import annotations

from dataclasses import dataclass

from fp4ref.gemm.fusion.node import F32, Binary, Visit
from fp4ref.numerics.arithmetic import min_nan


@dataclass(frozen=True, repr=False)
class Minimum(Binary):
    """PTX: ``min.NaN.f32``."""

    def visit(self, v: Visit, *inputs: F32) -> F32:
        """Apply it."""
        return min_nan(*inputs)
