"""add_bf16: a + b of BF16, each rounded to it first, and the sum once."""

from __future__ import annotations

from dataclasses import dataclass

from fp4ref.gemm.fusion.node import F32, Binary, Visit
from fp4ref.numerics.bf16x2 import add_bf16x2


@dataclass(frozen=True, repr=False)
class AddBf16(Binary):
    """PTX: ``add.rn.bf16x2``."""

    def visit(self, v: Visit, *inputs: F32) -> F32:
        """Apply it."""
        return add_bf16x2(*inputs)
