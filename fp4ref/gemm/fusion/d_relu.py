"""d_relu: mask != 0 ? dy : 0, with the bits of a ReLU mask."""

from __future__ import annotations

from dataclasses import dataclass

from fp4ref.gemm.fusion.node import F32, Binary, Visit
from fp4ref.numerics.activation import d_relu


@dataclass(frozen=True, repr=False)
class DRelu(Binary):
    """The function of `fp4ref.numerics.activation`."""

    def visit(self, v: Visit, *inputs: F32) -> F32:
        """Apply it."""
        return d_relu(*inputs)
