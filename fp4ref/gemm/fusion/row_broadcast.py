"""row_broadcast: a number for each column, the same for every row."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np

from fp4ref.gemm.fusion.arguments import Argument, VectorArgument
from fp4ref.gemm.fusion.node import F32, EpilogueWarp, Node, Region, Visit, slot
from fp4ref.hardware import gmem
from fp4ref.hardware.sm import Blocked
from fp4ref.trace import Range


@dataclass(frozen=True, repr=False)
class RowBroadcast(Node):
    """CUTLASS's ``Sm90RowBroadcast``.

    Parameters
    ----------
    name
        Of the vector among the launch's arguments; None is the configuration's bias.
    """

    name: str | None = None

    @property
    def _slot(self) -> str:
        return "bias" if self.name is None else f"row_{self.name}"

    @property
    def arguments(self) -> tuple[Argument, ...]:
        """The vector, (N,)."""
        if self.name is None:
            return ()
        return (VectorArgument(self.name, self._slot, axis=2),)

    @property
    def template(self) -> tuple[str, ...]:
        """The slot."""
        return (slot(self._slot),)

    def previsit(
        self, e: EpilogueWarp, at: Region
    ) -> Generator[Blocked, None, F32 | None]:
        """Read the numbers of 32 columns; columns beyond D are 0: (32,)."""
        values = np.zeros(len(at.columns), np.float32)
        count = min(at.columns.stop, e.params.d_columns) - at.columns.start
        if count > 0:
            first = e.params.passed(self._slot)
            where = Range("gmem", first + 4 * at.columns.start, 4 * count)
            values[:count] = gmem.ld(e.warp, where)[0].view("<f4")
        yield from ()
        return values

    def visit(self, v: Visit, *inputs: F32) -> F32:
        """Return what was read."""
        return v.loaded[self]
