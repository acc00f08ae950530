"""tanh: the hyperbolic tangent."""

from __future__ import annotations

from dataclasses import dataclass

from fp4ref.gemm.fusion.node import F32, Unary, Visit
from fp4ref.numerics.activation import tanh


@dataclass(frozen=True, repr=False)
class Tanh(Unary):
    """The function of `fp4ref.numerics.activation`."""

    def visit(self, v: Visit, *inputs: F32) -> F32:
        """Apply it."""
        return tanh(*inputs)
