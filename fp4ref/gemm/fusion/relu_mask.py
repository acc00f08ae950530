"""relu_mask: a bit for each value, whether ReLU leaves it, and the value is handed on.

The bit is 1 of a NaN and of both zeros: it is ``relu(x) == x``, or unordered.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fp4ref.gemm.fusion.arguments import Argument, TensorResult
from fp4ref.gemm.fusion.aux_tensor import WORD_NBYTES, aux_addresses
from fp4ref.gemm.fusion.node import F32, EpilogueWarp, Region, Steps, Unary, Visit, slot
from fp4ref.hardware import gmem


@dataclass(frozen=True, repr=False)
class ReluMask(Unary):
    """CUTLASS's ``Sm90ReLUAuxStore``, a ``uint1b_t`` tensor.

    Parameters
    ----------
    name
        Of the tensor among the run's results.
    m_major
        Whether D, and so this, lies in rows of M elements. The plan says it.
    """

    name: str
    m_major: bool = False

    stores = True

    @property
    def arguments(self) -> tuple[Argument, ...]:
        """The tensor."""
        return (TensorResult(self.name, f"mask_{self.name}", "u1", self.m_major),)

    @property
    def template(self) -> tuple[str, ...]:
        """The slot."""
        return (slot(f"mask_{self.name}"),)

    def visit(self, v: Visit, *inputs: F32) -> F32:
        """Hand the value on."""
        return inputs[0]

    def postreduce(self, e: EpilogueWarp, at: Region, v: Visit) -> Steps:
        """Store the words of each row of D, or half a word; bits beyond D are 0."""
        tensor = e.params.passed(f"mask_{self.name}")
        inside, rows = aux_addresses(e, at, tensor, "u1", 1)
        bits = v.inside & ~(v.values[self] < 0)
        words = np.packbits(bits, axis=1, bitorder="little")
        if at.columns.start < e.params.d_columns and inside.any():
            for first in range(0, words.shape[1], WORD_NBYTES):
                word = words[inside, first : first + WORD_NBYTES]
                gmem.st(e.warp, rows[inside] + first, word)
        yield from ()
