"""hardswish: x * min(max(x + 3, 0), 6) / 6."""

from __future__ import annotations

from dataclasses import dataclass

from fp4ref.gemm.fusion.node import F32, Unary, Visit
from fp4ref.numerics.activation import hardswish


@dataclass(frozen=True, repr=False)
class Hardswish(Unary):
    """The function of `fp4ref.numerics.activation`."""

    def visit(self, v: Visit, *inputs: F32) -> F32:
        """Apply it."""
        return hardswish(*inputs)
