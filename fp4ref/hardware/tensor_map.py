"""Part 3. tensor_map: the CUtensorMap, its encode rules and its 128 bytes.

`TensorMap` holds the arguments of ``cuTensorMapEncodeTiled`` and refuses what the
driver refuses, by rule. `to_bytes` and `from_bytes` use the layout of the officially
opaque object (`tensor_map_bits`). The emulator only uses the decoded fields.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from itertools import chain
from math import prod
from typing import Any

from fp4ref.errors import TensorMapError
from fp4ref.hardware import tensor_map_bits as bits
from fp4ref.layout import SwizzleMode


class DataType(IntEnum):
    """``CUtensorMapDataType``, with the values of cuda.h."""

    UINT8 = 0
    UINT16 = 1
    UINT32 = 2
    INT32 = 3
    UINT64 = 4
    INT64 = 5
    FLOAT16 = 6
    FLOAT32 = 7
    FLOAT64 = 8
    BFLOAT16 = 9
    FLOAT32_FTZ = 10
    TFLOAT32 = 11
    TFLOAT32_FTZ = 12
    U4_ALIGN8B = 13
    """Sixteen 4-bit elements in 8 bytes: dense E2M1."""
    U4_ALIGN16B = 14
    """Sixteen 4-bit elements in 8 bytes, and 8 of padding in shared memory."""
    U6_ALIGN16B = 15
    """Sixteen 6-bit elements in 12 bytes, and 4 of padding in shared memory."""

    @property
    def bits(self) -> int:
        """Bits of one element in global memory."""
        return _BITS[self]

    @property
    def is_float(self) -> bool:
        """Whether out-of-bounds elements may be filled with NaN."""
        return DataType.FLOAT16 <= self <= DataType.TFLOAT32_FTZ

    @property
    def is_padded(self) -> bool:
        """Whether 16 elements take 16 bytes of shared memory whatever their size."""
        return self in (DataType.U4_ALIGN16B, DataType.U6_ALIGN16B)


_BITS = dict(
    zip(
        DataType,
        (8, 16, 32, 32, 64, 64, 16, 32, 64, 16, 32, 32, 32, 4, 4, 6),
        strict=True,
    )
)

_ELEMENT_CODE = dict(
    zip(DataType, (0, 1, 2, 3, 4, 5, 6, 7, 9, 10, 8, 7, 8, 11, 12, 13), strict=True)
)
"""In the map; TF32 shares the float codes and has a bit of its own."""

_TF32 = (DataType.TFLOAT32, DataType.TFLOAT32_FTZ)
_SWIZZLE_INFO = (0x10, 0x100, 0x200, 0x400, 0x400)
"""The last is assumed: no card that was asked takes such a map."""

_ATOM_32B = 1
"""Swizzle atomicity: 16 bytes, 32, 32 with halves exchanged, 64."""

_L2_PROMOTIONS = 4
NBYTES = bits.NBYTES
MAX_EXTENT = 1 << 32
MAX_BOX = 256
MAX_BOX_NBYTES = 228 << 10
"""All of an SM's shared memory, more than a CTA can have."""
MAX_RANK = bits.MAX_RANK


@dataclass(frozen=True)
class TensorMap:
    """Arguments of ``cuTensorMapEncodeTiled``, checked. Frames 3.1 and 3.2.

    Parameters
    ----------
    dims, box
        Elements, fastest dimension first.
    strides
        Bytes, for dimensions 1 and up.
    l2_promotion
        0 none, 1 64B, 2 128B, 3 256B. Without effect here.
    oob_nan
        Fill out-of-bounds elements with NaN instead of zero.

    Raises
    ------
    TensorMapError
        The driver would return ``CUDA_ERROR_INVALID_VALUE``; the message has the rule.
    """

    data_type: DataType
    address: int
    dims: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    element_strides: tuple[int, ...] = ()
    interleave: int = 0
    swizzle: SwizzleMode = SwizzleMode.NONE
    l2_promotion: int = 2
    oob_nan: bool = False

    def __post_init__(self) -> None:
        if not self.element_strides:
            object.__setattr__(self, "element_strides", (1,) * self.rank)
        _check(self)

    @cached_property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.dims)

    @cached_property
    def is_dense(self) -> bool:
        """Whether neither interleaving nor element strides are used."""
        return not self.interleave and all(e == 1 for e in self.element_strides)

    @cached_property
    def boxes(self) -> dict[tuple[int, ...], Any]:
        """Where boxes lie in global memory, by coordinates: see `tma_box.inside`."""
        return {}

    @cached_property
    def box_row_nbytes(self) -> int:
        """Bytes of one box row in shared memory."""
        if self.data_type.is_padded:
            return self.box[0]
        return self.box[0] * self.data_type.bits // 8

    @cached_property
    def box_smem_nbytes(self) -> int:
        """Bytes of shared memory that the box covers, padding included."""
        return self.box_row_nbytes * prod(self.box[1:])

    @cached_property
    def box_nbytes(self) -> int:
        """Bytes that one load credits to its mbarrier: the full box, always.

        Padding does not count: it is appended, and what counts is the data copied.
        """
        return prod(self.box) * self.data_type.bits // 8

    @property
    def strided_box_nbytes(self) -> int:
        """Box bytes, each extent divided by its element stride and rounded down."""
        steps = zip(self.box, self.element_strides, strict=True)
        return prod(b // e for b, e in steps) * self.data_type.bits // 8

    def to_bytes(self) -> bytes:
        """Return the 128 bytes of the CUtensorMap."""
        w = [0] * bits.WORDS
        bits.ADDRESS.put(w, self.address)
        bits.RANK.put(w, self.rank - 1)
        bits.ELEMENT.put(w, _ELEMENT_CODE[self.data_type])
        bits.TF32.put(w, self.data_type in _TF32)
        bits.INTERLEAVE.put(w, self.interleave)
        bits.SWIZZLE.put(w, min(self.swizzle, SwizzleMode.B128))
        if self.swizzle is SwizzleMode.B128_ATOM_32B:
            bits.ATOMICITY.put(w, _ATOM_32B)
        bits.FILL.put(w, self.oob_nan)
        bits.L2_PROMOTION.put(w, self.l2_promotion)
        for field, stride in zip(bits.STRIDES, self.strides, strict=False):
            field.put(w, stride >> 4)
        for i, dim in enumerate(self.dims):
            bits.DIMS[i].put(w, dim - 1)
            bits.BOX[i].put(w, self.box[i] - 1)
            bits.ELEMENT_STRIDES[i].put(w, self.element_strides[i] - 1)
        tile_nbytes = 0 if self.data_type.bits < 8 else self.strided_box_nbytes
        bits.TILE_NBYTES.put(w, tile_nbytes)
        bits.SWIZZLE_INFO.put(w, _SWIZZLE_INFO[self.swizzle])
        return bits.packed(w)

    @classmethod
    def from_bytes(cls, data: bytes) -> TensorMap:
        """Decode 128 bytes that the driver, `to_bytes` or a kernel made.

        Raises
        ------
        TensorMapError
            Not 128 bytes, an unknown element code, a kind of map that this machine
            does not have, or fields that break a rule.
        """
        if len(data) != NBYTES:
            raise TensorMapError(f"a tensor map has {NBYTES} bytes, not {len(data)}")
        w = bits.unpacked(data)
        rank = bits.RANK.get(w) + 1
        code, tf32 = bits.ELEMENT.get(w), bool(bits.TF32.get(w))
        types = [
            t for t, c in _ELEMENT_CODE.items() if c == code and tf32 == (t in _TF32)
        ]
        if not types or rank > MAX_RANK:
            raise TensorMapError(
                f"word 2 is {w[2]:#010x}: element code {code}, rank {rank}; this is no "
                "tensor map"
            )
        swizzle, atomicity = SwizzleMode(bits.SWIZZLE.get(w)), bits.ATOMICITY.get(w)
        with_pairs = atomicity == _ATOM_32B and swizzle is SwizzleMode.B128
        if bits.IM2COL.get(w) or (atomicity and not with_pairs):
            raise TensorMapError(
                f"word 2 is {w[2]:#010x}: an im2col map, or a swizzle atom other than "
                "16 bytes; this machine has tiled maps with 16-byte atoms, and with "
                "32-byte atoms in the 128-byte swizzle"
            )
        return cls(
            types[0],
            bits.ADDRESS.get(w),
            tuple(field.get(w) + 1 for field in bits.DIMS[:rank]),
            tuple(field.get(w) << 4 for field in bits.STRIDES[: rank - 1]),
            tuple(field.get(w) + 1 for field in bits.BOX[:rank]),
            tuple(field.get(w) + 1 for field in bits.ELEMENT_STRIDES[:rank]),
            bits.INTERLEAVE.get(w),
            SwizzleMode.B128_ATOM_32B if with_pairs else swizzle,
            bits.L2_PROMOTION.get(w),
            bool(bits.FILL.get(w)),
        )


_Rule = tuple[bool, str]
"""Whether a rule holds, and what it says. Later rules rely on earlier ones."""


def _check(m: TensorMap) -> None:
    """Raise `TensorMapError` for the first rule that `m` breaks."""
    for holds, rule in chain(_extent_rules(m), _layout_rules(m), _type_rules(m)):
        if not holds:
            raise TensorMapError(f"cuTensorMapEncodeTiled: {rule}")


def _extent_rules(m: TensorMap) -> Iterator[_Rule]:
    """Rank, address, dimensions, strides and box."""
    rank = m.rank
    alignment = 32 if m.data_type.is_padded or m.interleave == 2 else 16
    yield 1 <= rank <= MAX_RANK, f"the rank is 1 to 5, not {rank}"
    yield (
        len(m.strides) == rank - 1 and len(m.box) == len(m.element_strides) == rank,
        f"rank {rank} takes {rank - 1} strides, {rank} box extents and {rank} "
        f"element strides, not {len(m.strides)}, {len(m.box)} and "
        f"{len(m.element_strides)}",
    )
    yield (
        m.address % alignment == 0 and 0 <= m.address < 1 << 64,
        f"the global address is a multiple of {alignment} bytes, not {m.address:#x}",
    )
    yield (
        all(1 <= d <= MAX_EXTENT for d in m.dims),
        f"every dimension is 1 to 2^32, not {m.dims}",
    )
    yield (
        all(s % alignment == 0 and 0 <= s < 1 << 40 for s in m.strides),
        f"every stride is a multiple of {alignment} bytes below 2^40, not "
        f"{m.strides}; pad the row pitch (packed E2M1 needs K a multiple of "
        f"{alignment * 2})",
    )
    yield (
        all(1 <= b <= MAX_BOX for b in m.box),
        f"every box extent is 1 to {MAX_BOX} elements, not {m.box}",
    )
    yield (
        all(1 <= e <= 8 for e in m.element_strides),
        f"every element stride is 1 to 8, not {m.element_strides}",
    )


def _layout_rules(m: TensorMap) -> Iterator[_Rule]:
    """Interleave, swizzle and L2 promotion."""
    inner_bits = m.box[0] * (8 if m.data_type.is_padded else m.data_type.bits)
    yield m.interleave in (0, 1, 2), f"interleave is 0, 1 or 2, not {m.interleave}"
    yield (
        m.interleave == 0 or m.rank >= 3,
        f"an interleaved layout has rank 3 or more, not {m.rank}",
    )
    yield (
        inner_bits % 128 == 0,
        f"a box row is a multiple of 16 bytes, not {inner_bits / 8:g}",
    )
    yield (
        m.interleave != 0
        or m.swizzle is SwizzleMode.NONE
        or inner_bits <= 8 * m.swizzle.span,
        f"a box row is at most the swizzle span of {m.swizzle.span} bytes, not "
        f"{inner_bits / 8:g}",
    )
    yield (
        0 <= m.l2_promotion < _L2_PROMOTIONS,
        f"the L2 promotion is 0 to 3, not {m.l2_promotion}",
    )


def _type_rules(m: TensorMap) -> Iterator[_Rule]:
    """What the element type asks for, and the size of the box."""
    dtype, dim, box = m.data_type, m.dims[0], m.box[0]
    yield (
        not m.oob_nan or dtype.is_float,
        f"NaN fill needs a floating-point type, not {dtype.name}",
    )
    yield (
        dtype is not DataType.U4_ALIGN8B or dim % 2 == 0,
        f"dimension 0 of U4_ALIGN8B is even, not {dim}",
    )
    yield (
        not dtype.is_padded or (dim % 128 == 0 and box == 128),
        f"{dtype.name} needs dimension 0 a multiple of 128 and a box row of 128 "
        f"elements, not {dim} and {box}",
    )
    yield (
        dtype is not DataType.U6_ALIGN16B or m.interleave == 0,
        f"U6_ALIGN16B has no interleaved layout, not {m.interleave}",
    )
    yield (
        m.strided_box_nbytes <= MAX_BOX_NBYTES,
        f"a box is at most {MAX_BOX_NBYTES} bytes, not {m.strided_box_nbytes}",
    )
