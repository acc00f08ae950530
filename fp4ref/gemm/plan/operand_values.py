"""Parts 1, 3 and 4. operand_values: what follows from the formats of A and B.

A row of a stage is 128 bytes, the span of the swizzle, and so are four MMAs of 32 bytes
along K: how many elements that is depends on the kind of MMA.
"""

from __future__ import annotations

from functools import cached_property

from fp4ref.gemm.descriptors import K_BLOCKS, OPERAND_SWIZZLE, SF_COLUMNS
from fp4ref.gemm.plan.epilogue_values import EpilogueValues
from fp4ref.gemm.why import deduced
from fp4ref.hardware.instr_descriptor import (
    InstrDescriptor,
    UnscaledInstrDescriptor,
    UnscaledKind,
)
from fp4ref.hardware.mxf8f6f4_descriptor import Mxf8f6f4InstrDescriptor
from fp4ref.hardware.tensor_map import DataType
from fp4ref.layout import SwizzleMode
from fp4ref.layout.scale_factors import ATOM_COLS, ATOM_NBYTES, ATOM_ROWS
from fp4ref.numerics import ElementFormat, ScaleFormat
from fp4ref.numerics.element import Element
from fp4ref.numerics.elements import BLOCKS, element
from fp4ref.numerics.kinds import MmaKind, kind_of

_BUILDER = "CUTLASS sm100_blockscaled_umma_builder.inl"
_KINDS = "PTX: tcgen05.mma kinds and shapes"
_SCALES = "PTX: tcgen05.mma block scaling; CUTLASS sm100_blockscaled_layout.hpp"
_TENSOR_MAP = "PTX: tensor map element types, .b4x16_p64 and .b6x16_p32"

_ONE_SCALE = "one byte for each of {{p.{}}} rows and {{p.sf_vec_size}} of {{p.tile_k}} "
_ONE_SCALE += "elements"


class OperandValues(EpilogueValues):
    """The part of a `Plan` that A, B and their scales decide.

    Without scales their counts and sizes are 0.
    """

    # -- formats -------------------------------------------------------------------

    @deduced("asked: {c.operand_format}; B is {c.b_format}, or as A if None", _KINDS)
    def formats(self) -> tuple[str, str]:
        """Formats of A and B as they are given."""
        asked = self.config.operands
        b_format = asked.operand_format if asked.b_format is None else asked.b_format
        return asked.operand_format, b_format

    @deduced("asked: {value}, with swap_ab={c.swap_ab}", _KINDS)
    def a_format(self) -> str:
        """Format of what the kernel takes for A."""
        return self.formats[self.config.operands.swap_ab]

    @deduced("asked: {value}, with swap_ab={c.swap_ab}", _KINDS)
    def b_format(self) -> str:
        """Format of what the kernel takes for B."""
        return self.formats[not self.config.operands.swap_ab]

    @property
    def _kind(self) -> MmaKind:
        found = kind_of(self.a_format, self.b_format)
        assert found is not None  # the rules refuse it
        return found

    @property
    def _elements(self) -> tuple[Element, Element]:
        return element(self.a_format), element(self.b_format)

    @deduced("{p.a_format} by {p.b_format}", _KINDS)
    def kind(self) -> str:
        """The ``.kind`` of the MMA."""
        return self._kind.name

    @deduced("32 bytes of a row, as kind::{p.kind} holds its elements", _KINDS)
    def mma_k(self) -> int:
        """Elements of K in one MMA."""
        return self._kind.k

    @deduced("{p.a_format} as kind::{p.kind} holds it in shared memory", _TENSOR_MAP)
    def a_type(self) -> DataType:
        """TMA element type of A."""
        return self._tma_type(self._elements[0])

    @deduced("{p.b_format} as kind::{p.kind} holds it in shared memory", _TENSOR_MAP)
    def b_type(self) -> DataType:
        """TMA element type of B."""
        return self._tma_type(self._elements[1])

    def _tma_type(self, of: Element) -> DataType:
        """4 bits in a container of 8 have padding; 6 bits always do."""
        if of.bits < self._kind.container_bits:
            return DataType[f"U{of.bits}_ALIGN16B"]
        return DataType[of.tma or ""]

    @deduced(
        "TMA: a pitch is a multiple of 16 bytes, and of whole blocks with a scale; "
        "padded types have rows of whole boxes, 128 elements. cp.async: whole blocks",
        _TENSOR_MAP,
    )
    def k_multiple(self) -> int:
        """What K is a multiple of."""
        if self.by_cp_async:
            return self.sf_vec_size
        types = (self.a_type, self.b_type)
        pitch = max(128 if each.is_padded else 128 // each.bits for each in types)
        return max(pitch, self.sf_vec_size)

    # -- the tile ------------------------------------------------------------------

    @deduced(
        "asked: {value} columns; rows are {p.tile_m} and K is {p.tile_k}", _BUILDER
    )
    def tile_n(self) -> int:
        """Columns of the CTA tile."""
        return self.config.tile.n

    @deduced("asked: {value} SMs execute one MMA", _BUILDER)
    def cta_group(self) -> int:
        """CTAs of an MMA."""
        return self.config.cluster.cta_group

    @deduced("{c.tile_m} rows of the MMA in {p.cta_group} CTAs", _BUILDER)
    def tile_m(self) -> int:
        """Rows of the CTA tile."""
        return self.config.tile.m // self.cta_group

    @deduced("{p.tile_n} rows of B in {p.cta_group} CTAs", "PTX: tcgen05.mma shapes")
    def b_rows(self) -> int:
        """Rows of B that a CTA has: half for a pair."""
        return self.tile_n // self.cta_group

    @deduced("{p.k_blocks} MMAs of {p.mma_k}", _BUILDER)
    def tile_k(self) -> int:
        """Elements of K in a k-tile."""
        return self.k_blocks * self.mma_k

    @deduced("MMAs of 32 bytes along K in a row of 128, the swizzle's span", _KINDS)
    def k_blocks(self) -> int:
        """MMAs of a k-tile."""
        return K_BLOCKS

    def k_tiles(self, k: int) -> int:
        """Mainloop iterations of a tile. Frame 2.3."""
        return -(-k // self.tile_k)

    # -- scales --------------------------------------------------------------------

    @deduced("{p.a_format}: elements of K that share a scale", _SCALES)
    def sf_vec_size(self) -> int:
        """Elements of a block with one scale."""
        return BLOCKS[self.a_format].vec_size if self._kind.scaled else 0

    @deduced("{p.sf_atom_k} elements of an atom in MMAs of K = {p.mma_k}", _SCALES)
    def k_blocks_per_atom(self) -> int:
        """MMAs that a scale atom serves, each with its part of every word."""
        return self.sf_atom_k // self.mma_k

    @deduced("scales of a row in an MMA: {value}", "PTX: tcgen05.mma, scale vectors")
    def scale_vec(self) -> str:
        """The ``scale_vec`` modifier of the MMA; empty without scales."""
        if not self._kind.scaled:
            return ""
        return f"{ATOM_COLS // self.k_blocks_per_atom}X"

    @deduced("{p.sf_vec_size} for each of an atom's 4 columns", _SCALES)
    def sf_atom_k(self) -> int:
        """Elements of K that one scale atom covers."""
        return ATOM_COLS * self.sf_vec_size

    @deduced("{p.tile_k} elements in atoms of {p.sf_atom_k}", _SCALES)
    def sf_atoms(self) -> int:
        """Scale atoms along K of a stage."""
        return self.tile_k // self.sf_atom_k if self._kind.scaled else 0

    @deduced("scales come in whole blocks of 128 rows, for {p.tile_m} of A", _SCALES)
    def sf_rows_a(self) -> int:
        """Rows of SFA in a stage."""
        return self._sf_rows(self.tile_m)

    @deduced("scales come in whole blocks of 128 rows, for {p.tile_n} of B", _SCALES)
    def sf_rows_b(self) -> int:
        """Rows of SFB in a stage."""
        return self._sf_rows(self.tile_n)

    def _sf_rows(self, rows: int) -> int:
        """Round up to whole blocks of rows."""
        return -(-rows // ATOM_ROWS) * ATOM_ROWS if self._kind.scaled else 0

    @deduced("{p.sf_rows_a} rows in blocks of 128", _SCALES)
    def sfa_blocks(self) -> int:
        """Row blocks of SFA in a stage, an atom high."""
        return self.sf_rows_a // ATOM_ROWS

    @deduced("{p.sf_rows_b} rows in blocks of 128", _SCALES)
    def sfb_blocks(self) -> int:
        """Row blocks of SFB in a stage, an atom high."""
        return self.sf_rows_b // ATOM_ROWS

    @deduced("4 for 128 rows and each atom along K", _SCALES)
    def sfa_columns(self) -> int:
        """TMEM columns of SFA for one atom along K."""
        return SF_COLUMNS * self.sfa_blocks

    @deduced("4 for each 128 of {p.sf_rows_b} rows and each atom along K", _SCALES)
    def sfb_columns(self) -> int:
        """TMEM columns of SFB for one atom along K."""
        return SF_COLUMNS * self.sfb_blocks

    @deduced("one for 128 rows of SFA or SFB and each of {p.sf_atoms} atoms", _SCALES)
    def scale_copies(self) -> int:
        """``tcgen05.cp`` of a k-tile."""
        return self.sf_atoms * (self.sfa_blocks + self.sfb_blocks)

    # -- a k-tile ------------------------------------------------------------------

    @deduced("a row of {p.tile_k} elements is as long as the swizzle's span", _BUILDER)
    def operand_swizzle(self) -> SwizzleMode:
        """Swizzle of A and B in shared memory."""
        return OPERAND_SWIZZLE

    @deduced("{p.tile_m} rows of 128 bytes: {p.tile_k} elements", _BUILDER)
    def a_nbytes(self) -> int:
        """A of one k-tile in shared memory, with padding."""
        return self.tile_m * OPERAND_SWIZZLE.span

    @deduced("{p.b_rows} rows of 128 bytes: {p.tile_k} elements", _BUILDER)
    def b_nbytes(self) -> int:
        """B of one k-tile in shared memory, with padding."""
        return self.b_rows * OPERAND_SWIZZLE.span

    @deduced(_ONE_SCALE.format("sf_rows_a"), _SCALES)
    def sfa_nbytes(self) -> int:
        """SFA of one stage."""
        return self.sfa_blocks * self.sf_atoms * ATOM_NBYTES

    @deduced(_ONE_SCALE.format("sf_rows_b"), _SCALES)
    def sfb_nbytes(self) -> int:
        """SFB of one stage."""
        return self.sfb_blocks * self.sf_atoms * ATOM_NBYTES

    @deduced(
        "{p.a_nbytes:,} of A, {p.b_nbytes:,} of B, {p.sfa_nbytes:,} of SFA and "
        "{p.sfb_nbytes:,} of SFB",
        _BUILDER,
    )
    def k_tile_nbytes(self) -> int:
        """Bytes of a k-tile in the shared memory of a CTA."""
        return self.a_nbytes + self.b_nbytes + self.sfa_nbytes + self.sfb_nbytes

    @deduced("asked: {c.loader} copies A and B; TMA copies the scales", _BUILDER)
    def by_cp_async(self) -> bool:
        """Whether the threads of the load warp copy A and B."""
        return self.config.mainloop.loader == "cp_async"

    @deduced("{p.k_tile_nbytes:,} of a k-tile less what is padding", _TENSOR_MAP)
    def k_tile_copied_nbytes(self) -> int:
        """Bytes of a k-tile that are copied to a CTA: padding is appended there."""
        padding = sum(
            rows * (OPERAND_SWIZZLE.span - self.tile_k * of.bits // 8)
            for rows, of in zip((self.tile_m, self.b_rows), self._elements, strict=True)
        )
        return self.k_tile_nbytes - padding

    @deduced("a k-tile without what {c.loader} copies by itself", _BUILDER)
    def tma_nbytes(self) -> int:
        """Bytes of a k-tile that TMA copies to a CTA."""
        scales = self.sfa_nbytes + self.sfb_nbytes
        return scales if self.by_cp_async else self.k_tile_copied_nbytes

    @deduced("{p.tma_nbytes:,} in each of {p.cta_group} CTAs", _BUILDER)
    def k_tile_tx_bytes(self) -> int:
        """Bytes that the loads of a k-tile credit to one full barrier."""
        return self.cta_group * self.tma_nbytes

    # -- the instruction descriptor ------------------------------------------------

    def idesc(self, scale_format: ScaleFormat | None, k_block: int = 0) -> int:
        """Instruction descriptor of one MMA; the scale type is an operand's.

        With fewer than four scales a row the MMAs of an atom take one part of its words
        after the other.
        """
        known = self._idescs
        if (found := known.get((scale_format, k_block))) is None:
            found = known[scale_format, k_block] = self._idesc(scale_format, k_block)
        return found

    @cached_property
    def _idescs(self) -> dict[tuple[ScaleFormat | None, int], int]:
        return {}

    def _idesc(self, scale_format: ScaleFormat | None, k_block: int) -> int:
        m, n = self.config.tile.m, self.tile_n
        a, b = (ElementFormat(each.name) for each in self._elements)
        if not self._kind.scaled:
            kind: UnscaledKind = "f16" if self.kind == "f16" else "f8f6f4"
            return UnscaledInstrDescriptor(kind, m, n, a, b).encode()
        parts = self.k_blocks_per_atom
        sf_id = k_block % parts * (ATOM_COLS // parts)
        if self.kind == "mxf8f6f4":
            return Mxf8f6f4InstrDescriptor(m, n, a, b, sf_id, sf_id).encode()
        assert scale_format is not None  # the operands have scales
        return InstrDescriptor(m, n, scale_format, sf_id, sf_id).encode()

    @deduced("{p.a_format} in kind::{p.kind}", "PTX: instruction descriptor")
    def a_code(self) -> int:
        """Type of A in the instruction descriptor."""
        return self._code(self._elements[0])

    @deduced("{p.b_format} in kind::{p.kind}", "PTX: instruction descriptor")
    def b_code(self) -> int:
        """Type of B in the instruction descriptor."""
        return self._code(self._elements[1])

    def _code(self, of: Element) -> int:
        return of.idesc["f8f6f4" if self.kind == "mxf8f6f4" else self.kind]
