"""divide: a / b, rounded once."""

from __future__ import annotations

from dataclasses import dataclass

from fp4ref.gemm.fusion.node import F32, Binary, Visit
from fp4ref.numerics.arithmetic import div_f32


@dataclass(frozen=True, repr=False)
class Divide(Binary):
    """PTX: ``div.rn.f32``."""

    def visit(self, v: Visit, *inputs: F32) -> F32:
        """Apply it."""
        return div_f32(*inputs)
