"""aux_load: a tensor of D's shape, read for each element."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np

from fp4ref.gemm.fusion.arguments import ROW_ALIGNMENT, Argument, TensorArgument
from fp4ref.gemm.fusion.aux_tensor import aux_addresses
from fp4ref.gemm.fusion.node import F32, EpilogueWarp, Node, Region, Visit, slot
from fp4ref.hardware import gmem
from fp4ref.hardware.sm import Blocked
from fp4ref.numerics.elements import ELEMENTS


@dataclass(frozen=True, repr=False)
class AuxLoad(Node):
    """CUTLASS's ``Sm90AuxLoad``.

    Parameters
    ----------
    name
        Of the tensor among the launch's arguments.
    element
        Name of its format.
    m_major
        Whether D, and so this, lies in rows of M elements. The plan says it.
    """

    name: str
    element: str = "f32"
    m_major: bool = False

    @property
    def arguments(self) -> tuple[Argument, ...]:
        """The tensor."""
        slot = f"aux_{self.name}"
        return (TensorArgument(self.name, slot, self.element, self.m_major),)

    @property
    def template(self) -> tuple[str, ...]:
        """The format and the slot."""
        return self.element.upper(), slot(f"aux_{self.name}")

    def previsit(
        self, e: EpilogueWarp, at: Region
    ) -> Generator[Blocked, None, F32 | None]:
        """Read the rows of D, 16 bytes at a time; beyond D is 0: (32, 32)."""
        element = ELEMENTS[self.element]
        tensor = e.params.passed(f"aux_{self.name}")
        inside, rows = aux_addresses(e, at, tensor, self.element, element.bits)
        nbytes = len(at.columns) * element.bits // 8
        raw = np.zeros((len(at.rows), nbytes), np.uint8)
        per_chunk = 8 * ROW_ALIGNMENT // element.bits
        for i, column in enumerate(at.columns[::per_chunk]):
            if column < e.params.d_columns and inside.any():
                chunk = slice(ROW_ALIGNMENT * i, ROW_ALIGNMENT * (i + 1))
                data = gmem.ld_each(e.warp, rows[inside] + chunk.start, ROW_ALIGNMENT)
                raw[inside, chunk] = data
        yield from ()
        return element.decode(raw.view(element.code_dtype))

    def visit(self, v: Visit, *inputs: F32) -> F32:
        """Return what was read."""
        return v.loaded[self]
