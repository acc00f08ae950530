"""aux_store: a value is stored in a tensor of its own, and handed on.

The tensor has the value converted, round to nearest even; the node that takes the value
has it as it was.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fp4ref.gemm.fusion.arguments import ROW_ALIGNMENT, Argument, TensorResult
from fp4ref.gemm.fusion.aux_tensor import aux_addresses
from fp4ref.gemm.fusion.node import F32, EpilogueWarp, Region, Steps, Unary, Visit, slot
from fp4ref.hardware import gmem
from fp4ref.numerics.elements import ELEMENTS


@dataclass(frozen=True, repr=False)
class AuxStore(Unary):
    """CUTLASS's ``Sm90AuxStore``.

    Parameters
    ----------
    name
        Of the tensor among the run's results.
    element
        Name of its format.
    m_major
        Whether D, and so this, lies in rows of M elements. The plan says it.
    """

    name: str
    element: str = "f32"
    m_major: bool = False

    stores = True

    @property
    def arguments(self) -> tuple[Argument, ...]:
        """The tensor."""
        slot = f"aux_{self.name}"
        return (TensorResult(self.name, slot, self.element, self.m_major),)

    @property
    def template(self) -> tuple[str, ...]:
        """The format and the slot."""
        return self.element.upper(), slot(f"aux_{self.name}")

    def visit(self, v: Visit, *inputs: F32) -> F32:
        """Hand the value on."""
        return inputs[0]

    def postreduce(self, e: EpilogueWarp, at: Region, v: Visit) -> Steps:
        """Store the rows of D, 16 bytes at a time; what is beyond a row is padding."""
        element = ELEMENTS[self.element]
        tensor = e.params.passed(f"aux_{self.name}")
        inside, rows = aux_addresses(e, at, tensor, self.element, element.bits)
        value = np.broadcast_to(v.values[self], v.inside.shape)
        codes = np.ascontiguousarray(element.encode(value)).view(np.uint8)
        per_chunk = 8 * ROW_ALIGNMENT // element.bits
        for i, column in enumerate(at.columns[::per_chunk]):
            if column < e.params.d_columns and inside.any():
                chunk = slice(ROW_ALIGNMENT * i, ROW_ALIGNMENT * (i + 1))
                gmem.st(e.warp, rows[inside] + chunk.start, codes[inside, chunk])
        yield from ()
