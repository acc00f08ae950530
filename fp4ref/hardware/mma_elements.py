"""mma_elements: A and B of the MMAs of 32 bytes along K, as codes of their elements.

A tile lies in shared memory, K-major or MN-major. A may lie in TMEM instead. Elements
of 16 and 8 bits lie side by side. Those of 6 and 4 bits lie packed at the start of
every 16 bytes, 16 of them; the rest of the 16 bytes is padding, which the MMA does not
read. Source: PTX, packing format used for matrix A and B by .kind::mxf8f6f4 in shared
memory; CUTLASS's ``*_unpacksmem_t``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fp4ref.errors import NotModelled
from fp4ref.hardware.data_path import DataPath
from fp4ref.hardware.mma_operands import Share, Tile, join_rows, tile_range
from fp4ref.hardware.operand_cells import ROW_NBYTES, OperandCells
from fp4ref.hardware.shared_memory import SharedMemory
from fp4ref.hardware.sm import Warp
from fp4ref.hardware.smem import SmemDescriptor
from fp4ref.hardware.tensor_memory import TensorMemory
from fp4ref.layout import SwizzleMode
from fp4ref.numerics import ElementFormat
from fp4ref.trace import Bytes, Range

Codes = NDArray[np.unsignedinteger]

_CHUNK = 16
"""Bytes of shared memory, and elements, of a padded group."""


@dataclass(frozen=True, slots=True)
class ElementTile(Tile):
    """A tile of A or B and the format of its elements.

    Attributes
    ----------
    rows, row_nbytes
        Of what is contiguous: of M or N rows with 32 bytes along K, or, if the tile is
        MN-major, of the instruction's K with all of M or N.
    """

    element: ElementFormat
    mn_major: bool

    @classmethod
    def of_elements(
        cls,
        warp: Warp,
        desc: SmemDescriptor,
        rows: int,
        element: ElementFormat,
        mn_major: bool,
        smem: SharedMemory | None = None,
    ) -> ElementTile:
        """Name the tile of `rows` rows of M or N at `desc`.

        Raises
        ------
        DescriptorFault, NotModelled, OutOfBounds
        """
        smem = smem or warp.smem
        if not mn_major:
            where = tile_range(warp.who, smem, desc, rows, ROW_NBYTES)
            return cls(smem, desc, rows, ROW_NBYTES, where, element, mn_major)
        nbytes = rows * max(element.bits, 8) // 8
        where = _mn_major_range(warp.who, smem, desc, element.k_step, nbytes)
        return cls(smem, desc, element.k_step, nbytes, where, element, mn_major)

    @property
    def addresses(self) -> NDArray[np.int64]:
        """Shared address of every byte that holds elements, shape (rows, bytes)."""
        name = self.desc.mn_major_offsets if self.mn_major else self.desc.offsets
        offsets = name(self.rows, self.row_nbytes)
        if self.element.bits >= 8:
            return offsets
        data = _CHUNK * self.element.bits // 8
        chunks = offsets.reshape(self.rows, -1, _CHUNK)[:, :, :data]
        return np.ascontiguousarray(chunks.reshape(self.rows, -1))

    def read(self) -> Bytes:
        """Gather the tile, shape (rows, bytes)."""
        if self.mn_major or self.element.bits < 8:
            return self.smem.gather_async(self.addresses, self.where)
        return Tile.read(self)

    def codes(self, negate: bool) -> Codes:
        """Read the elements, shape (M or N, K); negate them by their sign bit."""
        lines = unpack_codes(self.read(), self.element)
        codes = np.ascontiguousarray(lines.T) if self.mn_major else lines
        return _negated(codes, self.element) if negate else codes


def _negated(codes: Codes, element: ElementFormat) -> Codes:
    """Return codes with the other sign bit."""
    flipped: Codes = np.bitwise_xor(codes, codes.dtype.type(element.element.sign))
    return flipped


@dataclass(frozen=True, slots=True)
class ElementCells(OperandCells):
    """A in the TMEM of one CTA, and the format of its elements."""

    element: ElementFormat

    @classmethod
    def of_elements(
        cls,
        warp: Warp,
        taddr: int,
        d_tmem: int,
        path: DataPath,
        tmem: TensorMemory,
        element: ElementFormat,
    ) -> ElementCells:
        """Name the cells at `taddr`, of an MMA whose D is at `d_tmem`.

        Raises
        ------
        DescriptorFault, NotModelled, TmemAllocationFault
        """
        if element.bits < 8:
            raise NotModelled(
                f"A from TMEM in {element.name}",
                who=warp.who,
                where=f"taddr {taddr:#010x}",
                rule="an element of 6 or 4 bits has a byte of its own in TMEM, and "
                "which bits of the byte no text says",
                remedy="keep A in shared memory",
                gap="mma-a-in-tmem",
            )
        cells = OperandCells.of(warp, taddr, d_tmem, path, tmem)
        return cls(tmem, path, cells.blocks, warp.who, element)

    def codes(self, negate: bool) -> Codes:
        """Read the elements, shape (M, K); negate them by their sign bit."""
        codes = unpack_codes(self.read(), self.element)
        return _negated(codes, self.element) if negate else codes


def unpack_codes(data: Bytes, element: ElementFormat) -> Codes:
    """Split lines of bytes into codes, lowest bits first."""
    rows = np.ascontiguousarray(data)
    if element.bits >= 8:
        return rows.view(element.element.code_dtype)
    bits = np.unpackbits(rows, axis=1, bitorder="little")
    grouped = bits.reshape(len(rows), -1, element.bits)
    return np.packbits(grouped, axis=2, bitorder="little")[:, :, 0]


def _mn_major_range(
    who: str, smem: SharedMemory, desc: SmemDescriptor, k: int, nbytes: int
) -> Range:
    """Bounding range of an MN-major tile."""
    mode = desc.swizzle
    if mode is not SwizzleMode.NONE and desc.start % mode.alignment:
        raise NotModelled(
            f"an MN-major {mode.name} tile at {desc.start:#x}",
            who=who,
            where=smem.describe(desc.start),
            rule=f"the pattern starts on {mode.alignment} bytes",
            remedy=f"align the stage to {mode.alignment} bytes, and advance along K by "
            "groups of 8",
            gap="descriptor-row-start",
        )
    offsets = desc.mn_major_offsets(k, nbytes)
    first, last = int(offsets.min()), int(offsets.max())
    where = Range(smem.space, first, last - first + 1)
    smem.check_bounds(where)
    return where


@dataclass(frozen=True, slots=True)
class ElementShare(Share):
    """What one CTA holds of an MMA whose operands have an element format each."""

    a: ElementTile | ElementCells
    b: ElementTile


def read_codes(
    shares: Sequence[ElementShare], negate_a: bool, negate_b: bool
) -> tuple[list[Codes], Codes]:
    """Read A of each CTA, and all of B, in codes of shape (M or N, K)."""
    tiles = [(each.a.codes(negate_a), each.b.codes(negate_b)) for each in shares]
    return [a for a, _ in tiles], join_rows([b for _, b in tiles])
