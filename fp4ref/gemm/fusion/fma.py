"""fma: a * b + c, rounded once."""

from __future__ import annotations

from dataclasses import dataclass

from fp4ref.gemm.fusion.node import F32, Ternary, Visit
from fp4ref.numerics import fma_f32


@dataclass(frozen=True, repr=False)
class Fma(Ternary):
    """PTX: ``fma.rn.f32``."""

    def visit(self, v: Visit, *inputs: F32) -> F32:
        """Return the sum."""
        return fma_f32(*inputs)
