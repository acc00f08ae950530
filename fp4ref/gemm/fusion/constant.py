"""constant: one number, compiled into the kernel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fp4ref.gemm.fusion.node import F32, Node, Visit


@dataclass(frozen=True, repr=False)
class Constant(Node):
    """A float32."""

    number: float

    def visit(self, v: Visit, *inputs: F32) -> F32:
        """Return the number."""
        return np.asarray(self.number, np.float32)

    def __repr__(self) -> str:
        """Return the C++ type: the number by its bits."""
        return f"Constant<0x{np.float32(self.number).view(np.uint32):08x}>"
