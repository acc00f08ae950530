"""mma_operands: where an MMA finds A, B, their scales and D, and how it reads them.

A and B are K-major tiles in shared memory, named by a descriptor. Scales and D are in
TMEM, named by an address.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fp4ref.errors import DescriptorFault, NotModelled, ScaleFactorFault
from fp4ref.hardware.advisory import Advisory
from fp4ref.hardware.sm import Warp
from fp4ref.hardware.smem import SmemDescriptor
from fp4ref.hardware.tensor_memory import LANES, SF_ID_MASK, lane_column
from fp4ref.layout import SwizzleMode
from fp4ref.trace import Bytes, Range

SF_ROWS = 32
"""Rows of a scale-factor column block: row r of a tile is in lane r % 32."""


@dataclass(frozen=True, slots=True)
class Tile:
    """A K-major tile in shared memory.

    Attributes
    ----------
    where
        Bounding range, for conflicts, bounds and the trace.
    """

    warp: Warp
    desc: SmemDescriptor
    rows: int
    row_nbytes: int
    where: Range

    @classmethod
    def of(cls, warp: Warp, desc: SmemDescriptor, rows: int, row_nbytes: int) -> Tile:
        """Name the tile at `desc`.

        Raises
        ------
        DescriptorFault, NotModelled, OutOfBounds
        """
        where = _tile_range(warp, desc, rows, row_nbytes)
        return cls(warp, desc, rows, row_nbytes, where)

    @property
    def addresses(self) -> NDArray[np.int64]:
        """Shared address of every byte, shape (rows, row_nbytes)."""
        return self.desc.offsets(self.rows, self.row_nbytes)

    def read(self) -> Bytes:
        """Gather the tile, shape (rows, row_nbytes)."""
        return self.warp.smem.gather_async(self.addresses, self.where)


def _tile_range(warp: Warp, desc: SmemDescriptor, rows: int, row_nbytes: int) -> Range:
    """Bounding range of a K-major tile."""
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
                who=warp.who,
                where=warp.smem.describe(start),
                rule=f"a row stays inside its {row} bytes",
                remedy="align the stage; advance along K inside the row only",
            )
        if at := start % desc.swizzle.alignment // row:
            raise NotModelled(
                f"{what} starts at row {at} of the swizzle pattern",
                who=warp.who,
                where=warp.smem.describe(start),
                rule=f"the pattern starts on {desc.swizzle.alignment} bytes; a tile "
                "that means to start there and does not is read wrong",
                remedy=f"align the stage to {desc.swizzle.alignment} bytes",
                gap="descriptor-row-start",
            )
        start -= into_row
    last_group, last_row = divmod(rows - 1, 8)
    nbytes = last_group * desc.stride_nbytes + last_row * pitch + row
    where = Range(warp.smem.space, start, nbytes)
    warp.smem.check_bounds(where)
    return where


@dataclass(frozen=True, slots=True)
class Accumulator:
    """D of an MMA: 128 lanes x N columns of float32.

    Attributes
    ----------
    enable_input
        Whether the MMA adds to what D holds; else D starts at +0.
    """

    warp: Warp
    where: Range
    enable_input: bool

    @classmethod
    def of(cls, warp: Warp, d_tmem: int, n: int, enable_input: bool) -> Accumulator:
        """Name the accumulator at `d_tmem`.

        Raises
        ------
        DescriptorFault, TmemAllocationFault
        """
        lane, column = lane_column(d_tmem)
        if lane:
            raise DescriptorFault(
                f"accumulator at lane {lane}",
                who=warp.who,
                where=f"taddr {d_tmem:#010x}",
                rule="an accumulator with M=128 starts at lane 0",
                remedy="clear the lane field",
            )
        warp.tmem.check_allocated(column, n, warp.who)
        return cls(warp, warp.tmem.rectangle(0, LANES, column, n), enable_input)

    @property
    def inputs(self) -> list[Range]:
        """The cells, if the MMA reads them."""
        return [self.where] if self.enable_input else []

    def read(self) -> NDArray[np.float32] | None:
        """Return what D holds; None stands for +0."""
        if not self.enable_input:
            return None
        return self.warp.tmem.read(self.where).view(np.float32)

    def write(self, values: NDArray[np.float32]) -> None:
        """Write D, shape (128, N)."""
        self.warp.tmem.write(self.where, values.view(np.uint8))


def scale_range(warp: Warp, taddr: int, rows: int, name: str) -> Range:
    """Cells that hold the scales of `rows` rows, one 32-bit word for each row.

    An odd column counts as an advisory: PTX does not forbid it.
    """
    lane, column = lane_column(taddr & ~SF_ID_MASK)
    if lane:
        raise DescriptorFault(
            f"{name} at lane {lane}",
            who=warp.who,
            where=f"taddr {taddr:#010x}",
            rule="scales are in all four lane quarters, addressed from lane 0",
            remedy="clear the lane field",
        )
    columns = -(-rows // SF_ROWS)
    warp.tmem.check_allocated(column, columns, warp.who)
    if column % 2:
        warp.machine.allows(Advisory.ODD_SCALE_COLUMN)
    return warp.tmem.rectangle(0, LANES, column, columns)


def read_scales(
    warp: Warp, where: Range, rows: int, sf_id: int, count: int
) -> NDArray[np.uint8]:
    """Scale codes of each row, shape (rows, count); lane r % 32, column r // 32."""
    columns = where.nbytes // 4
    cells = warp.tmem.read(where).reshape(4, SF_ROWS, columns, 4)
    if (cells != cells[:1]).any():
        quarter, lane, column, byte = np.argwhere(cells != cells[:1])[0]
        raise ScaleFactorFault(
            f"scale byte {byte} of row {column * SF_ROWS + lane} is "
            f"{cells[0, lane, column, byte]:#04x} in lane {lane} and "
            f"{cells[quarter, lane, column, byte]:#04x} in lane "
            f"{lane + SF_ROWS * quarter}",
            who=warp.who,
            where=warp.tmem.describe(where.start),
            rule="scales are the same in all four lane quarters [PTX: scale factors]",
            remedy="copy with 32x128b.warpx4",
        )
    by_row = cells[0].transpose(1, 0, 2).reshape(columns * SF_ROWS, 4)
    return np.ascontiguousarray(by_row[:rows, sf_id : sf_id + count])
