"""split_tree: a value that a branch takes too, before it is handed on.

It is computed once. What the branch gives is not used: it is there for what it stores
and reduces.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from fp4ref.gemm.fusion.node import F32, Binary, Visit


@dataclass(frozen=True, repr=False)
class SplitTree(Binary):
    """CUTLASS's ``Sm90SplitTreeVisitor`` with one auxiliary tree."""

    def value(self, v: Visit) -> F32:
        """Evaluate the value, then the branch with it."""
        shared = self.a.value(v)
        self.b.value(replace(v, shared=shared))
        v.values[self] = shared
        return shared

    def visit(self, v: Visit, *inputs: F32) -> F32:
        """Hand the value on."""
        return inputs[0]
