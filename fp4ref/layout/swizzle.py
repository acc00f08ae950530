"""swizzle: the XOR pattern of shared-memory tiles.

A swizzled tile keeps its rows in place and permutes the 16-byte chunks inside them, so
that eight rows read at one column come from different banks. ``Sw<3,4,3>``, 128B:

    offset bit   ... 9 8 7   6 5 4   3 2 1 0
                     row     chunk   byte in chunk
                      +--XOR-->+

XOR changes no row bit, so applying it again undoes it. Source: PTX ISA, Tensor
swizzling modes; CuTe ``swizzle.hpp``.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from functools import cache, lru_cache
from typing import Any, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from fp4ref.errors import InputError, LayoutError
from fp4ref.layout.int_tuple import whole

PANEL_NBYTES = 128
"""Longest row of a swizzled tile. Longer rows are cut into panels, each a tile of its
own behind the one before, as CuTe's ``tile_to_shape`` lays atoms down first."""

CHUNK_NBYTES = 16
"""Bytes that every mode keeps together."""

MOST_NBYTES = 1 << 28
"""Of a tile that `swizzled_offsets` lists: a thousand times a shared memory."""

AnyInteger = TypeVar("AnyInteger", bound=np.integer[Any])


@dataclass(frozen=True, repr=False)
class Swizzle:
    """XOR `bits` bits, starting `shift` above bit `base`, into those at `base`.

    Parameters
    ----------
    bits
        How many bits take part; 0 moves nothing.
    base
        How many low bits stay together: 4 for chunks of 16 bytes.
    shift
        From the bits that are changed up to the bits that are read, at least `bits`.

    Raises
    ------
    LayoutError
        The two bit fields overlap, which would not be a permutation.
    """

    bits: int
    base: int
    shift: int

    def __post_init__(self) -> None:
        for name in ("bits", "base", "shift"):
            number = whole(getattr(self, name), name, most=63)
            object.__setattr__(self, name, number)
        if self.bits < 0 or self.base < 0 or self.shift < self.bits:
            raise LayoutError(
                f"{self}: needs bits >= 0, base >= 0 and shift >= bits, so that the "
                "bits read and the bits changed are apart"
            )

    @overload
    def __call__(self, offset: int) -> int: ...
    @overload
    def __call__(self, offset: NDArray[AnyInteger]) -> NDArray[AnyInteger]: ...
    def __call__(self, offset: int | NDArray[AnyInteger]) -> int | NDArray[AnyInteger]:
        """Permute a byte offset, or every offset of an integer array."""
        row_bits = ((1 << self.bits) - 1) << (self.base + self.shift)
        if not isinstance(offset, np.ndarray):
            offset = whole(offset, "offset")
            return offset ^ ((offset & row_bits) >> self.shift)
        if offset.dtype.kind not in "iu":
            raise InputError(f"offset: {offset.dtype}; need integers")
        wide = offset.astype(np.int64)
        return (wide ^ ((wide & row_bits) >> self.shift)).astype(offset.dtype)

    def __repr__(self) -> str:
        return f"Sw<{self.bits},{self.base},{self.shift}>"


class SwizzleMode(IntEnum):
    """The modes of TMA and of the MMA; values as in ``CUtensorMapSwizzle``."""

    NONE = 0
    B32 = 1
    B64 = 2
    B128 = 3
    B128_ATOM_32B = 4
    """Pairs of chunks move together: ``Sw<2,5,2>``. Of TMA only; the MMA lacks it here.

    Source: PTX ISA, Tensor swizzling modes; CuTe's ``Layout_MN_SW128_32B``.
    """

    @property
    def span(self) -> int:
        """Bytes of one row, inside which chunks move; 16, one chunk, for NONE."""
        return 16 << min(self.value, SwizzleMode.B128)

    @classmethod
    def of_span(cls, nbytes: int) -> SwizzleMode:
        """Return the mode whose span a row of `nbytes` fills."""
        return next(mode for mode in cls if mode.span == nbytes)

    @property
    def swizzle(self) -> Swizzle:
        """The permutation of byte offsets from an aligned start."""
        return _permutation(self)

    @property
    def alignment(self) -> int:
        """Bytes on which a tile must start for the pattern to start with it.

        128, 256, 512, 1024, 512: one period of the pattern. 128 for NONE is what a TMA
        destination needs anyway.
        """
        if self is SwizzleMode.B128_ATOM_32B:
            return 512
        return 128 << self.value

    @property
    def descriptor_code(self) -> int:
        """Bits 61-63 of the tcgen05 matrix descriptor: 0, 6, 4, 2, 1.

        Source: PTX ISA, Shared memory descriptor.
        """
        return (0, 6, 4, 2, 1)[self.value]


@cache
def _permutation(mode: SwizzleMode) -> Swizzle:
    if mode is SwizzleMode.B128_ATOM_32B:
        return Swizzle(2, 5, 2)
    return Swizzle(mode.value, 4, 3)


def swizzled_offsets(mode: SwizzleMode, rows: int, row_bytes: int) -> NDArray[np.int64]:
    """Say where each byte of a K-major tile lies in shared memory.

    Parameters
    ----------
    row_bytes
        Exactly ``mode.span`` for a swizzled mode; a multiple of 16 for NONE, where
        the tile is plain row-major.

    Returns
    -------
    int64 (rows, row_bytes), bytes
        Offset from the start of a tile that is aligned to ``mode.alignment``.

    Raises
    ------
    LayoutError
        `row_bytes` does not fit the mode.
    InputError
        No mode, or a tile that is empty or larger than `MOST_NBYTES`.
    """
    mode = SwizzleMode(whole(mode, "mode", 0, max(SwizzleMode)))
    row_bytes = whole(row_bytes, "row_bytes", 1, MOST_NBYTES)
    rows = whole(rows, "rows", 1, MOST_NBYTES // row_bytes)
    if mode is SwizzleMode.NONE:
        if row_bytes % 16:
            raise LayoutError(
                f"row_bytes: {row_bytes}; shared-memory rows are multiples of 16"
            )
    elif row_bytes != mode.span:
        raise LayoutError(
            f"row_bytes: {row_bytes} with {mode.name} swizzle; a swizzled row is "
            f"{mode.span} bytes ({2 * mode.span} E2M1 codes). Cut the tile into boxes "
            "of that width, or choose the mode whose span is the row"
        )
    plain = np.arange(rows * row_bytes, dtype=np.int64).reshape(rows, row_bytes)
    return mode.swizzle(plain)


@lru_cache(maxsize=64)
def _chunks_in_order(mode: SwizzleMode, rows: int, row_bytes: int) -> NDArray[np.intp]:
    """Return which chunk of a tile comes where in shared memory."""
    chunks = swizzled_offsets(mode, rows, row_bytes)[:, ::CHUNK_NBYTES]
    return np.argsort(chunks.ravel())


def swizzle_tile(mode: SwizzleMode, tile: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return the bytes of a K-major tile as they lie in shared memory, contiguous.

    Parameters
    ----------
    tile : (rows, row_bytes)
        As `swizzled_offsets` takes them.
    """
    chunks = np.ascontiguousarray(tile).reshape(-1).view(f"V{CHUNK_NBYTES}")
    order = _chunks_in_order(mode, *tile.shape)
    return chunks.take(order).view(np.uint8)
