"""mask_load: a tensor of bits, read as the numbers 1 and 0."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np

from fp4ref.gemm.fusion.arguments import Argument, TensorArgument
from fp4ref.gemm.fusion.aux_tensor import WORD_NBYTES, aux_addresses
from fp4ref.gemm.fusion.node import F32, EpilogueWarp, Node, Region, Visit, slot
from fp4ref.hardware import gmem
from fp4ref.hardware.sm import Blocked


@dataclass(frozen=True, repr=False)
class MaskLoad(Node):
    """CUTLASS's ``Sm90AuxLoad`` of ``uint1b_t``.

    Parameters
    ----------
    name
        Of the tensor among the launch's arguments.
    m_major
        Whether D, and so this, lies in rows of M elements. The plan says it.
    """

    name: str
    m_major: bool = False

    @property
    def arguments(self) -> tuple[Argument, ...]:
        """The tensor."""
        return (TensorArgument(self.name, f"mask_{self.name}", "u1", self.m_major),)

    @property
    def template(self) -> tuple[str, ...]:
        """The slot."""
        return (slot(f"mask_{self.name}"),)

    def previsit(
        self, e: EpilogueWarp, at: Region
    ) -> Generator[Blocked, None, F32 | None]:
        """Read the words of each row of D, or half a word: (32, columns).

        Beyond D is 0.
        """
        tensor = e.params.passed(f"mask_{self.name}")
        inside, rows = aux_addresses(e, at, tensor, "u1", 1)
        words = np.zeros((len(at.rows), len(at.columns) // 8), np.uint8)
        if at.columns.start < e.params.d_columns and inside.any():
            for first in range(0, words.shape[1], WORD_NBYTES):
                word = slice(first, min(first + WORD_NBYTES, words.shape[1]))
                read = gmem.ld_each(e.warp, rows[inside] + first, word.stop - first)
                words[inside, word] = read
        yield from ()
        return np.unpackbits(words, axis=1, bitorder="little").astype(np.float32)

    def visit(self, v: Visit, *inputs: F32) -> F32:
        """Return what was read."""
        return v.loaded[self]
