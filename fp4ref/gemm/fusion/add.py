"""add: a + b, rounded once."""

from __future__ import annotations

from dataclasses import dataclass

from fp4ref.gemm.fusion.node import F32, Binary, Visit
from fp4ref.numerics.arithmetic import add_f32


@dataclass(frozen=True, repr=False)
class Add(Binary):
    """PTX: ``add.rn.f32``."""

    def visit(self, v: Visit, *inputs: F32) -> F32:
        """Apply it."""
        return add_f32(*inputs)
