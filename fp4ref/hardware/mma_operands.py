"""mma_operands: where an MMA finds A, B, their scales and D, and how it reads them.

A and B are tiles in shared memory, named by a descriptor. Scales and D are in
TMEM, named by an address. For a pair each name stands for the same offset or address
in both CTAs: each has its own rows of A and D, and half of the rows of B.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from fp4ref.errors import DescriptorFault, ScaleFactorFault
from fp4ref.hardware.data_path import DATA_PATHS, DataPath
from fp4ref.hardware.operand_cells import OperandCells
from fp4ref.hardware.shared_memory import SharedMemory
from fp4ref.hardware.sm import Warp
from fp4ref.hardware.smem import SmemDescriptor
from fp4ref.hardware.tensor_memory import (
    CELL_NBYTES,
    LANE_NBYTES,
    LANES,
    TensorMemory,
    lane_column,
    scale_lane_column,
)
from fp4ref.layout import SwizzleMode
from fp4ref.trace import Bytes, Range

Unsigned = TypeVar("Unsigned", bound=np.unsignedinteger[Any])

Add = Callable[[NDArray[np.float32], tuple[int, int]], None]
"""Adds to a block of a C-contiguous array that starts at a row and a column."""

SF_ROWS = 32
"""Rows of a scale-factor column block: row r of a tile is in lane r % 32."""


@dataclass(frozen=True, slots=True)
class Tile:
    """A K-major tile in the shared memory of one CTA.

    Attributes
    ----------
    where
        Bounding range, for conflicts, bounds and the trace.
    known
        Numbers of its chunks, once they have been asked for.
    """

    smem: SharedMemory
    desc: SmemDescriptor
    rows: int
    row_nbytes: int
    where: Range
    known: list[NDArray[np.intp]] = field(
        default_factory=list, init=False, repr=False, compare=False
    )

    @classmethod
    def of(
        cls,
        warp: Warp,
        desc: SmemDescriptor,
        rows: int,
        row_nbytes: int,
        smem: SharedMemory | None = None,
    ) -> Tile:
        """Name the tile at `desc`, in the CTA of the warp or in another `smem`.

        Raises
        ------
        DescriptorFault, NotModelled, OutOfBounds
        """
        smem = smem or warp.smem
        where = tile_range(warp.who, smem, desc, rows, row_nbytes)
        return cls(smem, desc, rows, row_nbytes, where)

    @property
    def addresses(self) -> NDArray[np.int64]:
        """Shared address of every byte, shape (rows, row_nbytes)."""
        return self.desc.offsets(self.rows, self.row_nbytes)

    @property
    def place(self) -> str:
        """Where it is, in words."""
        return self.smem.describe(self.where.start)

    def read(self) -> Bytes:
        """Gather the tile, shape (rows, row_nbytes)."""
        return self.smem.gather_chunks_async(self.chunks, self.where)

    @property
    def chunks(self) -> NDArray[np.intp]:
        """Number of every chunk, counted from the first byte of shared memory."""
        if not self.known:
            self.known.append(self.desc.chunk_index(self.rows, self.row_nbytes))
        return self.known[0]


def tile_range(
    who: str, smem: SharedMemory, desc: SmemDescriptor, rows: int, row_nbytes: int
) -> Range:
    """Bounding range of a K-major tile.

    A tile may start at any row of a pattern: the base offset is 0 as long as the
    pattern itself is aligned. Measured with ``wgmma``.
    """
    start = desc.start
    if desc.swizzle is SwizzleMode.NONE:
        pitch, row = 16, (row_nbytes // 16 - 1) * desc.leading_nbytes + 16
    else:
        pitch = row = desc.swizzle.span
        into_row = start % row
        what = f"a {desc.swizzle.name} tile of {row_nbytes}-byte rows at {start:#x}"
        if into_row + row_nbytes > row:
            raise DescriptorFault(
                what,
                who=who,
                where=smem.describe(start),
                rule=f"a row stays inside its {row} bytes",
                remedy="align the stage; advance along K inside the row only",
            )
        start -= into_row
    last_group, last_row = divmod(rows - 1, 8)
    nbytes = last_group * desc.stride_nbytes + last_row * pitch + row
    where = Range(smem.space, start, nbytes)
    smem.check_bounds(where)
    return where


@dataclass(frozen=True, slots=True)
class Accumulator:
    """D of an MMA in the TMEM of one CTA: rows x N of float32 or float16.

    Attributes
    ----------
    path
        Which cells hold which elements.
    blocks
        The cells, in the order of `path`.
    enable_input
        Whether the MMA adds to what D holds; else D starts at +0.
    halves
        Whether D is of float16, each in the low half of a cell.
    """

    tmem: TensorMemory
    path: DataPath
    blocks: tuple[Range, ...]
    enable_input: bool
    halves: bool = False

    @classmethod
    def of(
        cls,
        warp: Warp,
        d_tmem: int,
        n: int,
        enable_input: bool,
        path: DataPath = DATA_PATHS[128, 1],
        tmem: TensorMemory | None = None,
        halves: bool = False,
    ) -> Accumulator:
        """Name the accumulator at `d_tmem`, in the CTA of the warp or another `tmem`.

        Raises
        ------
        DescriptorFault, TmemAllocationFault
        """
        tmem = tmem or warp.tmem
        lane, column = lane_column(d_tmem)
        if lane not in path.lane_choices:
            choices = " or ".join(map(str, path.lane_choices))
            raise DescriptorFault(
                f"accumulator at lane {lane}",
                who=warp.who,
                where=f"taddr {d_tmem:#010x}",
                rule=f"an accumulator of data path layout {path.name} starts at lane "
                f"{choices} [PTX: data path layout organization]",
                remedy="change the lane field",
            )
        tmem.check_allocated(column, path.columns(n), warp.who)
        blocks = path.blocks(tmem, lane, column, n)
        return cls(tmem, path, blocks, enable_input, halves)

    @property
    def inputs(self) -> tuple[Range, ...]:
        """The cells, if the MMA reads them."""
        return self.blocks if self.enable_input else ()

    @property
    def place(self) -> str:
        """Where it is, in words."""
        return self.tmem.describe(self.blocks[0].start)

    def read(self) -> NDArray[Any] | None:
        """Return what D holds; None stands for +0."""
        if not self.enable_input:
            return None
        return self.path.join([self.load(block) for block in self.blocks])

    def load(self, block: Range) -> NDArray[Any]:
        """Return the elements of some cells, shape (rows, columns)."""
        if not self.halves:
            return self.tmem.read(block).view(np.float32)
        return self.tmem.low_halves(block).view(np.float16)

    def store(self, block: Range, values: NDArray[Any]) -> None:
        """Write elements to cells."""
        if self.halves:
            codes = np.ascontiguousarray(values).view(np.uint16)
            self.tmem.write_low_halves(block, codes.astype(np.uint32))
        else:
            self.tmem.write(block, np.ascontiguousarray(values).view(np.uint8))

    def update(self, add: Add) -> None:
        """Let `add` change D, in the cells themselves if they are one block."""
        cells = None
        if len(self.blocks) == 1:
            cells = self.tmem.in_place(self.blocks[0], self.enable_input)
        if cells is not None:
            lane, byte = divmod(self.blocks[0].start, LANE_NBYTES)
            add(cells, (lane, byte // CELL_NBYTES))
            return
        values = self.read()
        if values is None:
            columns = self.blocks[0].nbytes // CELL_NBYTES * self.path.column_parts
            values = np.empty((self.path.rows, columns), np.float32)
        add(values, (0, 0))
        self.write(values)

    def write(self, values: NDArray[Any]) -> None:
        """Write D, shape (rows, N)."""
        for block, part in zip(self.blocks, self.path.split(values), strict=True):
            self.store(block, part)


@dataclass(frozen=True, slots=True)
class Scales:
    """Scales of A or B in the TMEM of one CTA, one 32-bit word for each row.

    Row r is in lane r % 32 of a lane quarter and column r // 32. All four quarters hold
    the same rows; those of B for a pair with M = 128 hold its first half in quarters
    0 and 1, and its second in 2 and 3, where the columns of D are that they scale.
    Source: PTX, scale factors; CuTe ``tmem_sf_frg``, ``ScaleFactorDuplicated2by2``.

    Attributes
    ----------
    rows
        Of one lane quarter.
    parts
        1, or 2 for the halves of B.
    """

    tmem: TensorMemory
    where: Range
    rows: int
    parts: int = 1

    @property
    def is_odd(self) -> bool:
        """Whether they start in an odd column: PTX does not forbid it."""
        return self.where.start // CELL_NBYTES % 2 == 1


def find_scales(
    warp: Warp,
    taddr: int,
    rows: int,
    name: str,
    tmem: TensorMemory | None = None,
    parts: int = 1,
) -> Scales:
    """Name the scales at `taddr`, of `rows` rows in each lane quarter."""
    tmem = tmem or warp.tmem
    lane, column = scale_lane_column(taddr)
    if lane:
        raise DescriptorFault(
            f"{name} at lane {lane}",
            who=warp.who,
            where=f"taddr {taddr:#010x}",
            rule="scales are in all four lane quarters, addressed from lane 0",
            remedy="clear the lane field",
        )
    columns = -(-rows // SF_ROWS)
    tmem.check_allocated(column, columns, warp.who)
    return Scales(tmem, tmem.rectangle(0, LANES, column, columns), rows, parts)


def read_scales(scales: Scales, who: str, sf_id: int, count: int) -> NDArray[np.uint8]:
    """Scale codes of each row, shape (rows * parts, count).

    Raises
    ------
    ScaleFactorFault
        Lane quarters that should hold the same scales do not.
    """
    columns, parts = scales.where.nbytes // 4, scales.parts
    copies = 4 // parts
    words = scales.tmem.read(scales.where).view(np.uint32)
    words = words.reshape(parts, copies, SF_ROWS, columns)
    if any(part.tobytes() != copies * part[0].tobytes() for part in words):
        cells = words.view(np.uint8).reshape(parts, copies, SF_ROWS, columns, 4)
        part, copy, lane, column, byte = np.argwhere(cells != cells[:, :1])[0]
        row = column * SF_ROWS + lane + part * scales.rows
        first = copies * SF_ROWS * part + lane
        raise ScaleFactorFault(
            f"scale byte {byte} of row {row} is "
            f"{cells[part, 0, lane, column, byte]:#04x} in lane {first} and "
            f"{cells[part, copy, lane, column, byte]:#04x} in lane "
            f"{first + SF_ROWS * copy}",
            who=who,
            where=scales.tmem.describe(scales.where.start),
            rule="scales are the same in all four lane quarters [PTX: scale factors]"
            if parts == 1
            else "scales of B are the same in lane quarters 0 and 1, and in 2 and 3, "
            "for a pair with M = 128 [CuTe: ScaleFactorDuplicated2by2]",
            remedy="copy with 32x128b.warpx4"
            if parts == 1
            else "copy with 64x128b.warpx2::01_23",
        )
    by_row = np.ascontiguousarray(words[:, 0].swapaxes(1, 2))  # (parts, columns, 32)
    codes = by_row.view(np.uint8).reshape(parts, columns * SF_ROWS, 4)
    if (columns * SF_ROWS, count) != (scales.rows, 4):
        codes = codes[:, : scales.rows, sf_id : sf_id + count]
    return np.ascontiguousarray(codes.reshape(-1, count))


@dataclass(frozen=True, slots=True)
class Share:
    """What one CTA holds of an MMA: rows of A and D, its part of B, the scales."""

    a: Tile | OperandCells
    b: Tile
    d: Accumulator
    scales: tuple[Scales, ...] = ()

    @property
    def tiles(self) -> list[Tile]:
        """What the MMA reads of shared memory."""
        return [self.a, self.b] if isinstance(self.a, Tile) else [self.b]

    @property
    def cells_read(self) -> list[Range]:
        """TMEM that the MMA reads."""
        a = () if isinstance(self.a, Tile) else self.a.blocks
        return [*a, *(each.where for each in self.scales), *self.d.inputs]

    @property
    def reads(self) -> list[Range]:
        """All that the MMA reads in this CTA."""
        return [*(each.where for each in self.tiles), *self.cells_read]


ShareT = TypeVar("ShareT", bound=Share, covariant=True)


@dataclass(frozen=True, slots=True)
class Shares(Generic[ShareT]):
    """What the CTAs hold of an MMA, and all that it reads and writes."""

    each: tuple[ShareT, ...]
    reads: tuple[Range, ...]
    writes: tuple[Range, ...]

    @classmethod
    def of(cls, shares: Sequence[ShareT]) -> Shares[ShareT]:
        """Collect what each share names."""
        reads = tuple(where for share in shares for where in share.reads)
        writes = tuple(block for share in shares for block in share.d.blocks)
        return cls(tuple(shares), reads, writes)


def join_rows(parts: list[NDArray[Unsigned]]) -> NDArray[Unsigned]:
    """Make B of the rows that two CTAs hold, the even one's first."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
