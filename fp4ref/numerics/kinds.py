"""kinds: which tcgen05 MMA multiplies two operand formats, and what a row of it holds.

A row of A or B in shared memory is 32 bytes for one MMA, whatever the kind; how many
elements these are depends on the container of an element. Source: PTX, tcgen05.mma
kinds and shapes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from fp4ref.numerics.elements import BLOCKS, ELEMENTS, element

ROW_NBYTES: Final = 32
"""Bytes along K of A and of B that one MMA reads."""


@dataclass(frozen=True, slots=True)
class MmaKind:
    """A ``.kind`` of the MMA.

    Attributes
    ----------
    name
        As PTX writes it.
    container_bits
        Of an element in shared memory; a narrower element is padded.
    scaled
        Whether elements share scales.
    """

    name: str
    container_bits: int
    scaled: bool

    @property
    def k(self) -> int:
        """Elements of K in one MMA."""
        return 8 * ROW_NBYTES // self.container_bits


KINDS: Final[Mapping[str, MmaKind]] = MappingProxyType(
    {
        each.name: each
        for each in (
            MmaKind("mxf4nvf4", 4, scaled=True),
            MmaKind("mxf8f6f4", 8, scaled=True),
            MmaKind("f8f6f4", 8, scaled=False),
            MmaKind("f16", 16, scaled=False),
        )
    }
)
"""The kinds by name."""

OPERAND_FORMATS: Final = (
    *BLOCKS,
    *(
        each.name
        for each in ELEMENTS.values()
        if not each.idesc.keys().isdisjoint(("f8f6f4", "f16"))
    ),
)
"""What A and B can be: block formats, then elements without scales."""


def kind_of(a_format: str, b_format: str) -> MmaKind | None:
    """Return the kind that multiplies A by B; None if no one does.

    MXFP4 by MXFP4 is ``mxf4nvf4``, which takes twice as many elements at a time as
    ``mxf8f6f4``.
    """
    blocks = [BLOCKS[name] for name in (a_format, b_format) if name in BLOCKS]
    if len(blocks) == 1:
        return None
    if blocks:
        if a_format == b_format and blocks[0].element == "e2m1":
            return KINDS["mxf4nvf4"]
        of_32 = all(each.vec_size == KINDS["mxf8f6f4"].k for each in blocks)
        return KINDS["mxf8f6f4"] if of_32 else None
    if a_format == b_format and "f16" in element(a_format).idesc:
        return KINDS["f16"]
    both = all("f8f6f4" in element(name).idesc for name in (a_format, b_format))
    return KINDS["f8f6f4"] if both else None
