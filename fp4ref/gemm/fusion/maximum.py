"""maximum: the larger of a and b; a NaN wins."""

from __future__ import annotations

from dataclasses import dataclass

from fp4ref.gemm.fusion.node import F32, Binary, Visit
from fp4ref.numerics.arithmetic import max_nan


@dataclass(frozen=True, repr=False)
class Maximum(Binary):
    """PTX: ``max.NaN.f32``."""

    def visit(self, v: Visit, *inputs: F32) -> F32:
        """Apply it."""
        return max_nan(*inputs)
