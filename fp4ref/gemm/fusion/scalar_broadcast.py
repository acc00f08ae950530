"""scalar_broadcast: one number of the launch, the same for every element."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fp4ref.gemm.fusion.arguments import Argument, ScalarArgument
from fp4ref.gemm.fusion.node import F32, Node, Visit, slot


@dataclass(frozen=True, repr=False)
class ScalarBroadcast(Node):
    """CUTLASS's ``Sm90ScalarBroadcast``.

    Parameters
    ----------
    name
        Of the number among the launch's arguments.
    default
        Its value where the launch passes none; None requires one.
    """

    name: str
    default: float | None = None

    @property
    def arguments(self) -> tuple[Argument, ...]:
        """The number."""
        return (ScalarArgument(self.name, f"scalar_{self.name}", self.default),)

    @property
    def template(self) -> tuple[str, ...]:
        """The slot."""
        return (slot(f"scalar_{self.name}"),)

    def visit(self, v: Visit, *inputs: F32) -> F32:
        """Return one number."""
        return np.asarray(v.params.passed(f"scalar_{self.name}"), np.float32)
