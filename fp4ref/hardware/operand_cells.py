"""operand_cells: where an MMA finds A in TMEM.

One instruction takes 32 bytes of each row of A: eight columns. Rows lie in the lanes
where D has them, by its data path layout:

======  ==============================================================================
layout  rows of A that one CTA holds
======  ==============================================================================
A, D    128, row i in lane i
B       64, row i in lane i and again in lane i + 64, beside both halves of D's columns
F       64, 16 in one half of each lane quarter: the half that D is in
======  ==============================================================================

Source: PTX, Data path layout organization; CuTe ``tmem_frg``, ``TmemAllocMode``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fp4ref.errors import DescriptorFault
from fp4ref.hardware.data_path import DataPath
from fp4ref.hardware.sm import Warp
from fp4ref.hardware.tensor_memory import CELL_NBYTES, TensorMemory, lane_column
from fp4ref.trace import Bytes, Range

ROW_NBYTES = 32
"""Bytes along K that one instruction reads."""


@dataclass(frozen=True, slots=True)
class OperandCells:
    """A in the TMEM of one CTA.

    Attributes
    ----------
    blocks
        The cells, in the order of the data path layout.
    who
        The warp, for faults.
    """

    tmem: TensorMemory
    path: DataPath
    blocks: tuple[Range, ...]
    who: str

    @classmethod
    def of(
        cls, warp: Warp, taddr: int, d_tmem: int, path: DataPath, tmem: TensorMemory
    ) -> OperandCells:
        """Name the cells at `taddr`, of an MMA whose D is at `d_tmem`.

        Raises
        ------
        DescriptorFault, TmemAllocationFault
        """
        lane, column = lane_column(taddr)
        d_lane, _ = lane_column(d_tmem)
        if lane != d_lane:
            raise DescriptorFault(
                f"A at lane {lane} and D at lane {d_lane}",
                who=warp.who,
                where=f"taddr {taddr:#010x}",
                rule=f"A and D of data path layout {path.name} start at the same lane "
                "[PTX: data path layout organization]",
                remedy="put the lane of D into the address of A",
            )
        columns = ROW_NBYTES // CELL_NBYTES
        tmem.check_allocated(column, columns, warp.who)
        blocks = tuple(
            tmem.rectangle(first + lane, path.lanes, column, columns)
            for first in path.first_lanes
        )
        return cls(tmem, path, blocks, warp.who)

    @property
    def place(self) -> str:
        """Where it is, in words."""
        return self.tmem.describe(self.blocks[0].start)

    def read(self) -> Bytes:
        """Read A, shape (rows, 32).

        Raises
        ------
        DescriptorFault
            The two copies of layout B differ.
        UninitialisedRead
        """
        parts = [self.tmem.read(block) for block in self.blocks]
        if self.path.column_parts == 1:
            return np.concatenate(parts)
        first, second = parts
        if not np.array_equal(first, second):
            row, byte = map(int, np.argwhere(first != second)[0])
            raise DescriptorFault(
                f"byte {byte} of row {row} of A is {first[row, byte]:#04x} in lane "
                f"{row} and {second[row, byte]:#04x} in lane {row + len(first)}",
                who=self.who,
                where=self.place,
                rule="A of a pair with M = 128 is in lanes 0 to 63 and again in 64 to "
                "127 [CuTe: TmemAllocMode::Duplicated]",
                remedy="store A twice",
            )
        return first
