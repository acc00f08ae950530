"""sigmoid: 1 / (1 + exp(-x))."""

from __future__ import annotations

from dataclasses import dataclass

from fp4ref.gemm.fusion.node import F32, Unary, Visit
from fp4ref.numerics.activation import sigmoid


@dataclass(frozen=True, repr=False)
class Sigmoid(Unary):
    """The function of `fp4ref.numerics.activation`."""

    def visit(self, v: Visit, *inputs: F32) -> F32:
        """Apply it."""
        return sigmoid(*inputs)
