"""d_gelu: dy times the derivative of GELU's tanh form at z."""

from __future__ import annotations

from dataclasses import dataclass

from fp4ref.gemm.fusion.node import F32, Binary, Visit
from fp4ref.numerics.activation import d_gelu


@dataclass(frozen=True, repr=False)
class DGelu(Binary):
    """The function of `fp4ref.numerics.activation`."""

    def visit(self, v: Visit, *inputs: F32) -> F32:
        """Apply it."""
        return d_gelu(*inputs)
