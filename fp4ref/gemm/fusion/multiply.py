"""multiply: a * b, rounded once."""

from __future__ import annotations

from dataclasses import dataclass

from fp4ref.gemm.fusion.node import F32, Binary, Visit
from fp4ref.numerics import mul_f32


@dataclass(frozen=True, repr=False)
class Multiply(Binary):
    """PTX: ``mul.rn.f32``."""

    def visit(self, v: Visit, *inputs: F32) -> F32:
        """Return the product."""
        return mul_f32(*inputs)
