"""tensor_memory: the cells of one SM's TMEM, and which columns are allocated.

An address is ``lane << 16 | column``. In traces and ranges one 32-bit cell is the four
bytes from ``lane * 2048 + column * 4``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fp4ref.errors import TmemAllocationFault
from fp4ref.hardware.memory import Memory
from fp4ref.trace import Range

LANES = 128
COLUMNS = 512
CELL_NBYTES = 4
LANE_NBYTES = COLUMNS * CELL_NBYTES
SLOT_COLUMNS = 32
"""Allocation granularity; the allocator's state is 16 slots [ptxas lowering]."""

SF_ID_MASK = 3 << 30
"""Bits of a scale address where CUTLASS keeps the scale-factor id."""


def address(lane: int, column: int) -> int:
    """``lane << 16 | column``."""
    return lane << 16 | column


def lane_column(taddr: int) -> tuple[int, int]:
    """Split an address."""
    return (taddr >> 16) & 0xFFFF, taddr & 0xFFFF


class TensorMemory(Memory):
    """The TMEM of one SM and its allocator."""

    def __init__(self, sm: int) -> None:
        super().__init__(f"tmem{sm}", 0, LANES * LANE_NBYTES)
        self.owner: list[int] = [-1] * (COLUMNS // SLOT_COLUMNS)
        self.sizes: dict[int, int] = {}
        self.last_size = COLUMNS
        self.relinquished = False

    def describe(self, address: int) -> str:
        """Lane and column of a linear byte address."""
        lane, byte = divmod(address, LANE_NBYTES)
        return f"{self.space} lane {lane} column {byte // CELL_NBYTES:#x}"

    def rectangle(self, lane: int, lanes: int, column: int, columns: int) -> Range:
        """Return the byte range of a block of cells."""
        start = lane * LANE_NBYTES + column * CELL_NBYTES
        return Range(self.space, start, columns * CELL_NBYTES, lanes, LANE_NBYTES)

    def find_free(self, columns: int) -> int | None:
        """First column of a free run of `columns`, if there is one."""
        slots = columns // SLOT_COLUMNS
        for first in range(0, len(self.owner), slots):
            if all(o < 0 for o in self.owner[first : first + slots]):
                return first * SLOT_COLUMNS
        return None

    def check_allocated(self, column: int, columns: int, who: str) -> None:
        """Raise `TmemAllocationFault` unless all the columns are allocated."""
        end = column + columns
        slots = range(column // SLOT_COLUMNS, -(-end // SLOT_COLUMNS))
        if end > COLUMNS or any(self.owner[s] < 0 for s in slots):
            raise TmemAllocationFault(
                f"columns {column:#x} to {end - 1:#x} are not all allocated",
                who=who,
                where=self.space,
                rule="only allocated columns may be used [PTX: tcgen05.alloc]",
                remedy="allocate enough columns, a power of two of at least 32",
            )

    @property
    def cells(self) -> NDArray[np.uint32]:
        """All cells, shape (128 lanes, 512 columns); a view."""
        return self.data.view(np.uint32).reshape(LANES, COLUMNS)

    @property
    def allocated(self) -> int:
        """Columns in use."""
        return SLOT_COLUMNS * sum(o >= 0 for o in self.owner)

    def forget(self) -> None:
        """Start a new CTA."""
        super().forget()
        self.relinquished = False
        self.last_size = COLUMNS
