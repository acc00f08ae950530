"""split_tree_fetch: the value that a branch shares with the tree."""

from __future__ import annotations

from dataclasses import dataclass

from fp4ref.gemm.fusion.node import F32, Node, Visit


@dataclass(frozen=True, repr=False)
class SplitTreeFetch(Node):
    """CUTLASS's ``Sm90SplitTreeFetch``."""

    def visit(self, v: Visit, *inputs: F32) -> F32:
        """Return the value."""
        assert v.shared is not None, "a rule lets it be in a branch only"
        return v.shared
