"""gelu: GELU, x / (1 + exp(-2u)), the tanh form."""

from __future__ import annotations

from dataclasses import dataclass

from fp4ref.gemm.fusion.node import F32, Unary, Visit
from fp4ref.numerics import gelu


@dataclass(frozen=True, repr=False)
class Gelu(Unary):
    """The function of `fp4ref.numerics.activation`."""

    activation = "gelu"

    def visit(self, v: Visit, *inputs: F32) -> F32:
        """Apply it."""
        return gelu(*inputs)
