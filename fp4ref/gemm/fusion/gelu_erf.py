"""gelu_erf: GELU, x / 2 * (1 + erf(x / sqrt(2)))."""

from __future__ import annotations

from dataclasses import dataclass

from fp4ref.gemm.fusion.node import F32, Unary, Visit
from fp4ref.numerics.activation import gelu_erf


@dataclass(frozen=True, repr=False)
class GeluErf(Unary):
    """The function of `fp4ref.numerics.activation`."""

    def visit(self, v: Visit, *inputs: F32) -> F32:
        """Apply it."""
        return gelu_erf(*inputs)
