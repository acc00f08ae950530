"""silu: SiLU, x / (1 + exp(-x))."""

from __future__ import annotations

from dataclasses import dataclass

from fp4ref.gemm.fusion.node import F32, Unary, Visit
from fp4ref.numerics import silu


@dataclass(frozen=True, repr=False)
class Silu(Unary):
    """The function of `fp4ref.numerics.activation`."""

    activation = "silu"

    def visit(self, v: Visit, *inputs: F32) -> F32:
        """Apply it."""
        return silu(*inputs)
