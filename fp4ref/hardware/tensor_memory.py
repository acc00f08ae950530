"""tensor_memory: the cells of one SM, their allocation, and the shapes that reach them.

An address is ``lane << 16 | column``. In traces and ranges one 32-bit cell is the four
bytes from ``lane * 2048 + column * 4``.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fp4ref.errors import TmemAllocationFault
from fp4ref.hardware.byte_array import Memory
from fp4ref.hardware.collector import CollectorBuffer
from fp4ref.trace import Range

LANES = 128
COLUMNS = 512
CELL_NBYTES = 4
LANE_NBYTES = COLUMNS * CELL_NBYTES
SLOT_COLUMNS = 32
"""Allocation granularity; the allocator's state is 16 slots [ptxas lowering]."""

_FREE, _HELD = -1, -2
"""Slots that nobody owns: one is free, the other was freed by one CTA of a pair."""

SF_ID_MASK = 3 << 30
"""Bits of a scale address where CUTLASS keeps the scale-factor id."""


Shape = Literal["32x32b", "16x64b", "16x128b", "16x256b", "16x32bx2"]
MAX_REPEAT: dict[str, int] = {
    "32x32b": 128,
    "16x64b": 128,
    "16x128b": 64,
    "16x256b": 32,
    "16x32bx2": 128,
}


def address(lane: int, column: int) -> int:
    """``lane << 16 | column``."""
    return lane << 16 | column


def lane_column(taddr: int) -> tuple[int, int]:
    """Split an address."""
    return (taddr >> 16) & 0xFFFF, taddr & 0xFFFF


def scale_lane_column(taddr: int) -> tuple[int, int]:
    """Split an address of scale factors, whose top two bits name no place."""
    return lane_column(taddr & ~SF_ID_MASK)


def _slots(column: int, columns: int) -> range:
    """Allocation slots that some columns touch."""
    return range(column // SLOT_COLUMNS, -(-(column + columns) // SLOT_COLUMNS))


class TensorMemory(Memory):
    """The TMEM of one SM and its allocator.

    Attributes
    ----------
    owner
        For each slot the first one of its allocation; negative if it has none.
    sizes
        Columns of each allocation, by its first column.
    last_size, relinquished
        What its CTA may still allocate.
    allocations
        How often the owner of a slot has changed.
    collector
        The buffer of A beside it.
    """

    def __init__(self, sm: int) -> None:
        super().__init__(f"tmem{sm}", 0, LANES * LANE_NBYTES)
        self.owner: list[int] = [_FREE] * (COLUMNS // SLOT_COLUMNS)
        self.sizes: dict[int, int] = {}
        self.last_size = COLUMNS
        self.relinquished = False
        self.allocations = 0
        self.collector = CollectorBuffer()

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
            if all(o == _FREE for o in self.owner[first : first + slots]):
                return first * SLOT_COLUMNS
        return None

    def take(self, column: int, columns: int) -> range:
        """Allocate columns; returns their slots."""
        self.sizes[column] = self.last_size = columns
        return self.set_aside(column, columns)

    def set_aside(self, column: int, columns: int) -> range:
        """Take columns that the CTA's own alloc will name; returns their slots."""
        slots = _slots(column, columns)
        self._own(slots, slots.start)
        return slots

    def _own(self, slots: range, owner: int) -> None:
        self.allocations += 1
        for slot in slots:
            self.owner[slot] = owner

    def hold(self, column: int, columns: int) -> None:
        """Keep columns that this CTA has freed until the peer has too."""
        del self.sizes[column]
        self._own(_slots(column, columns), _HELD)

    def release(self, column: int, columns: int) -> None:
        """Free columns."""
        self.sizes.pop(column, None)
        self._own(_slots(column, columns), _FREE)

    def check_allocated(self, column: int, columns: int, who: str) -> None:
        """Raise `TmemAllocationFault` unless all the columns are allocated."""
        end = column + columns
        slots = _slots(column, columns)
        if end <= COLUMNS and all(self.owner[s] >= 0 for s in slots):
            return
        remedy = "allocate enough columns, a power of two of at least 32"
        if end <= COLUMNS and any(self.owner[s] == _HELD for s in slots):
            remedy = "let both CTAs of a pair free them after the last use of either"
        raise TmemAllocationFault(
            f"columns {column:#x} to {end - 1:#x} are not all allocated",
            who=who,
            where=self.space,
            rule="only allocated columns may be used [PTX: tcgen05.alloc]",
            remedy=remedy,
        )

    @property
    def cells(self) -> NDArray[np.uint32]:
        """All cells, shape (128 lanes, 512 columns); a view."""
        return self.data.view(np.uint32).reshape(LANES, COLUMNS)

    def read_lanes(self, where: Range) -> NDArray[np.bool_]:
        """Note a read of cells; returns which of its lanes have values.

        A lane has them in all columns or in none.

        Raises
        ------
        OutOfBounds, ReadWhileInFlight
        UninitialisedRead
            No lane has values, or one has some.
        """
        self.check_bounds(where)
        self.guard(where, False)
        written = self.window(self.written, where)
        known: NDArray[np.bool_] = np.logical_and.reduce(written, axis=1)
        if not known.any() or (known != written.any(axis=1)).any():
            self.check_written(where)
        if self.recorder:
            self.recorder.read(where)
        return known

    def read_low_halves(self, where: Range) -> None:
        """Note a read of the low 16 bits of cells; only these need a value.

        Raises
        ------
        OutOfBounds, UninitialisedRead, ReadWhileInFlight
        """
        self.check_bounds(where)
        self.guard(where, False)
        low = self.window(self.written, where).reshape(where.rows, -1, CELL_NBYTES)
        if not low[:, :, :2].all():
            missing = ~low[:, :, :2]
            lane, column, byte = map(int, np.argwhere(missing)[0])
            address = where.start + lane * where.pitch + column * CELL_NBYTES + byte
            raise self.never_written(address, int(missing.sum()), missing.size)
        if self.recorder:
            self.recorder.read(where)

    def low_halves(self, where: Range) -> NDArray[np.uint16]:
        """Read the low 16 bits of cells, shape (rows, columns).

        Raises
        ------
        OutOfBounds, UninitialisedRead, ReadWhileInFlight
        """
        self.read_low_halves(where)
        cells = self.window(self.data, where).copy().view(np.uint16)
        return np.ascontiguousarray(cells[:, ::2])

    def write_low_halves(self, where: Range, cells: NDArray[np.uint32]) -> None:
        """Write the low 16 bits of cells, (rows, columns); the others have no value.

        Raises
        ------
        OutOfBounds, ReadWhileInFlight
        """
        self.write(where, cells.view(np.uint8))
        high = np.arange(where.nbytes) % CELL_NBYTES >= 2
        self.leave_undefined(where, np.tile(high, (where.rows, 1)))

    def in_place(self, where: Range, is_read: bool) -> NDArray[np.float32] | None:
        """Return all cells as float32, so that those of `where` may be changed there.

        Parameters
        ----------
        is_read
            Whether what they hold counts.

        Returns
        -------
        (128, 512) or None
            A view; None if a trace wants to see both values, or a cell that is read
            has none.

        Raises
        ------
        OutOfBounds, ReadWhileInFlight
        """
        if self.recorder is not None:
            return None
        self.check_bounds(where)
        self.guard(where, True)
        if not is_read:
            self.mark_written(where)
        elif not self.is_written(where):
            return None
        return self.cells.view(np.float32)

    @property
    def allocated(self) -> int:
        """Columns in use."""
        return SLOT_COLUMNS * sum(o >= 0 for o in self.owner)

    @property
    def held(self) -> int:
        """Columns that this CTA has freed and the peer of its pair has not."""
        return SLOT_COLUMNS * self.owner.count(_HELD)

    def forget(self) -> None:
        """Start a new CTA."""
        super().forget()
        self.relinquished = False
        self.last_size = COLUMNS
        self.collector.empty()


@lru_cache(maxsize=64)
def fragment(
    shape: Shape, repeat: int, half_split: int = 0
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Lane and column offset of every register, each shape (32 threads, registers).

    Source: PTX, data movement shapes; CUTLASS ``copy_traits_sm100.hpp``. `half_split`
    is the column offset of the second access of 16x32bx2.
    """
    t = np.arange(32)[:, None]
    r = np.arange(repeat)[None, :]
    lane: NDArray[np.int64]
    column: NDArray[np.int64]
    if shape == "32x32b":
        lane, column = t + 0 * r, r + 0 * t
    elif shape == "16x64b":
        lane, column = t // 4 + 8 * (t % 2) + 0 * r, t // 2 % 2 + 2 * r
    elif shape == "16x32bx2":
        lane, column = t % 16 + 0 * r, r + half_split * (t // 16)
    elif shape == "16x128b":
        r = np.arange(2 * repeat)[None, :]
        lane, column = t // 4 + 8 * (r % 2), t % 4 + 4 * (r // 2)
    else:
        r = np.arange(4 * repeat)[None, :]
        lane = t // 4 + 8 * (r // 2 % 2)
        column = 2 * (t % 4) + r % 2 + 8 * (r // 4)
    return lane, column


@lru_cache(maxsize=64)
def packed_fragment(
    shape: Shape, repeat: int, half_split: int = 0
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Lane and column offset of both cells of every register of 16-bit pairs.

    Each shape (32 threads, registers, 2): column c of `fragment` becomes 2c and 2c + 1,
    and the first of them is the register's low half. `half_split` counts columns of
    TMEM. Source: CuTe ``Copy_Traits`` of the operations that end in ``_16b``.
    """
    lane, column = fragment(shape, repeat)
    if shape == "16x32bx2":
        column = 2 * column + half_split * (np.arange(32)[:, None] // 16)
    else:
        column = 2 * column
    pair = np.arange(2)
    return lane[:, :, None] + 0 * pair, column[:, :, None] + pair
