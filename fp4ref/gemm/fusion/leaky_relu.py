"""leaky_relu: x > 0 ? x : x * slope."""

from __future__ import annotations

from dataclasses import dataclass

from fp4ref.gemm.fusion.node import F32, Binary, Visit
from fp4ref.numerics.activation import leaky_relu


@dataclass(frozen=True, repr=False)
class LeakyRelu(Binary):
    """The function of `fp4ref.numerics.activation`."""

    def visit(self, v: Visit, *inputs: F32) -> F32:
        """Apply it."""
        return leaky_relu(*inputs)
