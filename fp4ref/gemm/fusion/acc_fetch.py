"""acc_fetch: the accumulator."""

from __future__ import annotations

from dataclasses import dataclass

from fp4ref.gemm.fusion.node import F32, Node, Visit


@dataclass(frozen=True, repr=False)
class AccFetch(Node):
    """CUTLASS's ``Sm90AccFetch``."""

    def visit(self, v: Visit, *inputs: F32) -> F32:
        """Return 32 rows x 32 columns."""
        return v.acc
