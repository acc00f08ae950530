"""alpha: the factor that the launch passes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fp4ref.gemm.fusion.node import F32, Node, Visit


@dataclass(frozen=True, repr=False)
class Alpha(Node):
    """CUTLASS's ``Sm90ScalarBroadcast`` of ``alpha``."""

    def visit(self, v: Visit, *inputs: F32) -> F32:
        """Return one number."""
        return np.asarray(v.params.alpha, np.float32)
