"""relu: ReLU, max(x, +0)."""

from __future__ import annotations

from dataclasses import dataclass

from fp4ref.gemm.fusion.node import F32, Unary, Visit
from fp4ref.numerics import relu


@dataclass(frozen=True, repr=False)
class Relu(Unary):
    """The function of `fp4ref.numerics.activation`."""

    activation = "relu"

    def visit(self, v: Visit, *inputs: F32) -> F32:
        """Apply it."""
        return relu(*inputs)
