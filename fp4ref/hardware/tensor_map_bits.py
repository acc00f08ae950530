"""Part 3. tensor_map_bits: where each field is in the 128 bytes of a CUtensorMap.

The object is officially opaque. The places are those in which the driver writes them:
measured for thousands of maps on an H200 (driver 580.159). The codes of the 4-bit and
6-bit types, which that card refuses, and the swizzle atomicity are those of ptxas's
lowering of ``tensormap.replace``.
"""

from __future__ import annotations

import struct
from collections.abc import MutableSequence, Sequence
from typing import NamedTuple

NBYTES = 128
WORDS = 32
MAX_RANK = 5


class Part(NamedTuple):
    """Neighbouring bits of one 32-bit word."""

    word: int
    first: int
    width: int

    @property
    def mask(self) -> int:
        """Bits of the word."""
        return ((1 << self.width) - 1) << self.first


class BitField:
    """A field of the map: one part, or several, lowest bits first."""

    def __init__(self, *parts: tuple[int, int, int]) -> None:
        self.parts = tuple(Part(*each) for each in parts)

    def get(self, words: Sequence[int]) -> int:
        """Return the field's value."""
        value = shift = 0
        for part in self.parts:
            value |= (words[part.word] & part.mask) >> part.first << shift
            shift += part.width
        return value

    def put(self, words: MutableSequence[int], value: int) -> None:
        """Replace the field by the low bits of `value`."""
        for part in self.parts:
            words[part.word] &= ~part.mask
            words[part.word] |= value << part.first & part.mask
            value >>= part.width


ADDRESS = BitField((0, 0, 32), (1, 0, 32))
IM2COL = BitField((2, 0, 1))
RANK = BitField((2, 4, 3))
"""Minus one, as are the extents and the element strides."""
ELEMENT = BitField((2, 7, 4))
INTERLEAVE = BitField((2, 11, 2))
SWIZZLE = BitField((2, 13, 2))
FILL = BitField((2, 15, 1))
TF32 = BitField((2, 16, 1))
L2_PROMOTION = BitField((2, 17, 2))
ATOMICITY = BitField((2, 19, 2))
STRIDES = tuple(BitField((3 + i, 0, 32), (7, 4 * i, 4)) for i in range(MAX_RANK - 1))
"""In units of 16 bytes."""
DIMS = tuple(BitField((8 + i, 0, 32)) for i in range(MAX_RANK))
ELEMENT_STRIDES = tuple(BitField((13, 3 * i, 3)) for i in range(MAX_RANK))
BOX = (
    BitField((13, 24, 8)),
    *(BitField((14, 8 * i, 8)) for i in range(MAX_RANK - 1)),
)
TILE_NBYTES = BitField((16, 0, 32))
SWIZZLE_INFO = BitField((18, 0, 32))


def unpacked(data: bytes) -> list[int]:
    """Return the words of 128 bytes."""
    return list(struct.unpack(f"<{WORDS}I", data))


def packed(words: Sequence[int]) -> bytes:
    """Return the 128 bytes of the words."""
    return struct.pack(f"<{WORDS}I", *words)
