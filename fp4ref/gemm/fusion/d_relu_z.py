"""d_relu_z: z < 0 ? 0 : dy, with the value before ReLU."""

from __future__ import annotations

from dataclasses import dataclass

from fp4ref.gemm.fusion.node import F32, Binary, Visit
from fp4ref.numerics.activation import d_relu_z


@dataclass(frozen=True, repr=False)
class DReluZ(Binary):
    """The function of `fp4ref.numerics.activation`."""

    def visit(self, v: Visit, *inputs: F32) -> F32:
        """Apply it."""
        return d_relu_z(*inputs)
