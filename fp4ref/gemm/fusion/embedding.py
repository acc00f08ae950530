"""embedding: a table in BF16, one of whose rows is that of each row of D.

Row m of D has row m mod P of a table of P rows: a position embedding, where the rows of
D are the positions of one sequence after another.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np

from fp4ref.gemm.fusion.arguments import ROW_ALIGNMENT, Argument, row_nbytes
from fp4ref.gemm.fusion.node import F32, EpilogueWarp, Node, Region, Visit, slot
from fp4ref.gemm.fusion.table_arguments import TableArgument, TableRowsArgument
from fp4ref.hardware import gmem
from fp4ref.hardware.sm import Blocked
from fp4ref.numerics.elements import ELEMENTS

PER_CHUNK = 8
"""Elements of an access of 16 bytes."""


@dataclass(frozen=True, repr=False)
class Embedding(Node):
    """A row of the table for each row of D.

    Parameters
    ----------
    name
        Of the table among the launch's arguments: (P, N) in BF16.
    """

    name: str

    @property
    def _slots(self) -> tuple[str, str]:
        return f"table_{self.name}", f"rows_{self.name}"

    @property
    def arguments(self) -> tuple[Argument, ...]:
        """The table, and how many rows it has."""
        table, rows = self._slots
        return TableArgument(self.name, table), TableRowsArgument(self.name, rows)

    @property
    def template(self) -> tuple[str, ...]:
        """Both slots."""
        table, rows = self._slots
        return slot(table), slot(rows)

    def previsit(
        self, e: EpilogueWarp, at: Region
    ) -> Generator[Blocked, None, F32 | None]:
        """Read a row for each of D's, 16 bytes at a time; beyond D is 0: (32, 32)."""
        element = ELEMENTS["bf16"]
        table, count = (e.params.passed(each) for each in self._slots)
        columns = len(at.columns)
        raw = np.zeros((len(at.rows), columns * element.bits // 8), np.uint8)
        rows = np.arange(at.rows.start, at.rows.stop)
        inside = rows < e.params.d_rows
        pitch = row_nbytes("bf16", e.params.d_columns)
        starts = table + rows[inside] % count * pitch
        for i, column in enumerate(at.columns[::PER_CHUNK]):
            if column < e.params.d_columns and inside.any():
                chunk = slice(ROW_ALIGNMENT * i, ROW_ALIGNMENT * (i + 1))
                addresses = starts + column * element.bits // 8
                raw[inside, chunk] = gmem.ld_each(e.warp, addresses, ROW_ALIGNMENT)
        yield from ()
        return element.decode(raw.view(element.code_dtype))

    def visit(self, v: Visit, *inputs: F32) -> F32:
        """Return what was read."""
        return v.loaded[self]
