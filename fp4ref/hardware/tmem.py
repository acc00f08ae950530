"""Part 4. tmem: 128 lanes x 512 columns of 32 bits, and how warps reach them.

An address is ``lane << 16 | column``. Columns are allocated in powers of two from 32 to
512, by a whole warp. A warp reaches only the lanes of its own quarter:
``32 * (warp % 4)`` and the 31 after it. Source: PTX, Tensor Memory; CUTLASS
``copy_sm100.hpp``.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from fp4ref.errors import (
    DescriptorFault,
    LaneQuarterViolation,
    NotModelled,
    RegistersNotReady,
    TmemAllocationFault,
)
from fp4ref.hardware.memory import Memory
from fp4ref.trace import Range

if TYPE_CHECKING:
    from fp4ref.hardware.machine import AsyncOp
    from fp4ref.hardware.sm import Blocked, Warp

LANES = 128
COLUMNS = 512
CELL_NBYTES = 4
LANE_NBYTES = COLUMNS * CELL_NBYTES
SLOT_COLUMNS = 32
"""Allocation granularity; the allocator's state is 16 slots [ptxas lowering]."""

SF_ID_MASK = 3 << 30
"""Bits of a scale address where CUTLASS keeps the scale-factor id."""

Shape = Literal["32x32b", "16x64b", "16x128b", "16x256b", "16x32bx2"]
_MAX_REPEAT: dict[str, int] = {
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


@dataclass(frozen=True, slots=True)
class AllocWait:
    """A warp waits for free columns."""

    tmem: TensorMemory
    columns: int

    def ready(self) -> bool:
        """Whether a run of that many columns is free."""
        return self.tmem.find_free(self.columns) is not None

    def describe(self) -> str:
        """How much is asked for and how much is in use."""
        return (
            f"tcgen05.alloc of {self.columns} columns: "
            f"{self.tmem.allocated} of {COLUMNS} in use"
        )

    def released_by(self) -> str:
        """Only a dealloc frees columns."""
        return "a tcgen05.dealloc on the same SM"


def _alloc_fault(warp: Warp, what: str, rule: str, remedy: str) -> TmemAllocationFault:
    return TmemAllocationFault(
        what, who=warp.who, where=warp.tmem.space, rule=rule, remedy=remedy
    )


def alloc(
    warp: Warp, smem_address: int, columns: int
) -> Generator[Blocked, None, None]:
    """``tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32``. Frame 4.2.

    Blocks until the columns are free, then writes the TMEM address to shared memory.

    Raises
    ------
    TmemAllocationFault
        Not a power of two in 32..512, more than an earlier allocation of the CTA, or
        after ``relinquish_alloc_permit``.
    """
    tmem = warp.tmem
    if columns not in (32, 64, 128, 256, 512):
        raise _alloc_fault(
            warp,
            f"tcgen05.alloc of {columns} columns",
            "the column count is a power of two in 32..512 [PTX: tcgen05.alloc]",
            "round up to a power of two",
        )
    if tmem.relinquished:
        raise _alloc_fault(
            warp,
            "tcgen05.alloc after relinquish_alloc_permit",
            "a CTA may not allocate after it gave up the permit [PTX: tcgen05.alloc]",
            "relinquish after the last allocation",
        )
    if columns > tmem.last_size:
        raise _alloc_fault(
            warp,
            f"tcgen05.alloc of {columns} columns after one of {tmem.last_size}",
            "successive allocations of a CTA must not grow [PTX: tcgen05.alloc]",
            "allocate the largest block first",
        )
    if tmem.find_free(columns) is None:
        yield AllocWait(tmem, columns)
    column = tmem.find_free(columns)
    assert column is not None
    first = column // SLOT_COLUMNS
    for slot in range(first, first + columns // SLOT_COLUMNS):
        tmem.owner[slot] = first
    tmem.sizes[column] = columns
    tmem.last_size = columns
    cta, offset = warp.cta.resolve_shared(smem_address)
    word = np.frombuffer(column.to_bytes(4, "little"), np.uint8)
    cta.smem.write(Range(cta.smem.space, offset, 4), word.reshape(1, 4))
    warp.record(
        "tcgen05.alloc", {"dst": smem_address, "columns": columns, "taddr": column}
    )


def dealloc(warp: Warp, taddr: int, columns: int) -> None:
    """``tcgen05.dealloc``: free what one ``alloc`` gave. Frame 8.5.

    Raises
    ------
    TmemAllocationFault
        The address and size are not those of a live allocation.
    """
    tmem = warp.tmem
    lane, column = lane_column(taddr)
    if lane or tmem.sizes.get(column) != columns:
        raise _alloc_fault(
            warp,
            f"tcgen05.dealloc of {columns} columns at {taddr:#x}",
            "dealloc names the address and size of one live alloc [PTX: "
            "tcgen05.dealloc]",
            "keep the address that tcgen05.alloc wrote",
        )
    del tmem.sizes[column]
    where = tmem.rectangle(0, LANES, column, columns)
    warp.machine.guard(where, True)
    tmem.window(tmem.written, where)[:] = False
    for slot, owner in enumerate(tmem.owner):
        if owner == column // SLOT_COLUMNS:
            tmem.owner[slot] = -1
    warp.record("tcgen05.dealloc", {"taddr": taddr, "columns": columns})


def relinquish_alloc_permit(warp: Warp) -> None:
    """``tcgen05.relinquish_alloc_permit``: this CTA will not allocate again. Frame 8.2."""
    warp.tmem.relinquished = True
    warp.record("tcgen05.relinquish_alloc_permit", {})


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


class Registers:
    """Destination registers of one ``tcgen05.ld``, shape (32 threads, registers)."""

    def __init__(self, warp: Warp) -> None:
        self._warp = warp
        self._words: NDArray[np.uint32] | None = None
        self._waited = False

    def fill(self, words: NDArray[np.uint32]) -> None:
        """Land the load."""
        self._words = words

    def wait(self) -> None:
        """Mark that ``tcgen05.wait::ld`` covered this load."""
        self._waited = True

    @property
    def words(self) -> NDArray[np.uint32]:
        """The values.

        Raises
        ------
        RegistersNotReady
            No ``tcgen05.wait::ld`` came between the load and this use.
        """
        if self._words is None or not self._waited:
            raise RegistersNotReady(
                "a tcgen05.ld result is used before tcgen05.wait::ld",
                who=self._warp.who,
                rule="tcgen05.ld is asynchronous [PTX: tcgen05.wait]",
                remedy="execute tcgen05.wait::ld first",
            )
        return self._words


def _access(
    warp: Warp, taddr: int, shape: Shape, repeat: int, half_split: int, name: str
) -> tuple[NDArray[np.int64], NDArray[np.int64], list[Range]]:
    """Check one ld or st; return lanes, columns and the blocks they fill."""
    if shape not in _MAX_REPEAT:
        raise NotModelled(
            f"{name}.{shape}",
            who=warp.who,
            remedy=f"use one of {', '.join(_MAX_REPEAT)}",
        )
    limit = _MAX_REPEAT[shape]
    if repeat not in (1, 2, 4, 8, 16, 32, 64, 128) or repeat > limit:
        raise DescriptorFault(
            f"{name}.{shape}.x{repeat}",
            who=warp.who,
            rule=f"the repeat of {shape} is a power of two up to {limit} [PTX: {name}]",
            remedy="split the access",
        )
    lane0, column0 = lane_column(taddr)
    lanes, columns = fragment(shape, repeat, half_split)
    lanes, columns = lanes + lane0, columns + column0
    quarter = 32 * (warp.index % 4)
    if lanes.min() < quarter or lanes.max() >= quarter + 32:
        raise LaneQuarterViolation(
            f"{name} touches lanes {lanes.min()} to {lanes.max()}",
            who=warp.who,
            where=f"taddr {taddr:#010x}",
            rule=f"warp {warp.index} reaches lanes {quarter} to {quarter + 31} "
            "[PTX: tcgen05.ld, access restrictions]",
            remedy="put 32 * (warp % 4) into the lane field",
        )
    top, bottom = int(lanes.min()), int(lanes.max())
    distinct = np.unique(columns)
    runs = np.split(distinct, np.flatnonzero(np.diff(distinct) != 1) + 1)
    blocks = []
    for run in runs:
        first, count = int(run[0]), run.size
        warp.tmem.check_allocated(first, count, warp.who)
        blocks.append(warp.tmem.rectangle(top, bottom - top + 1, first, count))
    return lanes, columns, blocks


def _inside(columns: NDArray[np.int64], block: Range) -> NDArray[np.bool_]:
    """Which registers belong to one block of neighbouring columns."""
    first = block.start % LANE_NBYTES // CELL_NBYTES
    found: NDArray[np.bool_] = (columns >= first) & (
        columns < first + block.nbytes // CELL_NBYTES
    )
    return found


def ld(
    warp: Warp,
    taddr: int,
    shape: Shape = "32x32b",
    repeat: int = 1,
    half_split: int = 0,
) -> Registers:
    """``tcgen05.ld.sync.aligned.SHAPE.xN.b32``. Frame 7.5.

    Returns registers that may be read after `wait_ld`.

    Raises
    ------
    LaneQuarterViolation, TmemAllocationFault, DescriptorFault
    """
    lanes, columns, blocks = _access(
        warp, taddr, shape, repeat, half_split, "tcgen05.ld"
    )
    registers = Registers(warp)

    def land() -> None:
        for block in blocks:
            warp.tmem.read(block)
        registers.fill(warp.tmem.cells[lanes, columns])

    operands = {"taddr": taddr, "shape": shape, "repeat": repeat}
    op = warp.machine.issue(warp, "tcgen05.ld", operands, land, reads=blocks)
    warp.tmem_accesses.append(op)
    op.registers = registers
    return registers


def st(
    warp: Warp,
    taddr: int,
    words: NDArray[np.uint32],
    shape: Shape = "32x32b",
    repeat: int = 1,
    half_split: int = 0,
) -> None:
    """``tcgen05.st.sync.aligned.SHAPE.xN.b32``; `words` is (32 threads, registers).

    Raises
    ------
    LaneQuarterViolation, TmemAllocationFault, DescriptorFault
    """
    lanes, columns, blocks = _access(
        warp, taddr, shape, repeat, half_split, "tcgen05.st"
    )

    def land() -> None:
        cells = warp.tmem.cells.copy()
        cells[lanes, columns] = words
        for block in blocks:
            warp.tmem.write(
                block, warp.tmem.window(cells.view(np.uint8).ravel(), block)
            )

    operands = {"taddr": taddr, "shape": shape, "repeat": repeat}
    op = warp.machine.issue(warp, "tcgen05.st", operands, land, writes=blocks)
    warp.tmem_accesses.append(op)


@dataclass(frozen=True, slots=True)
class TmemWait:
    """A warp waits for its own ``tcgen05.ld`` or ``st``."""

    ops: tuple[AsyncOp, ...]
    name: str

    def ready(self) -> bool:
        """Whether all have landed."""
        return all(op.landed for op in self.ops)

    def describe(self) -> str:
        """How many are in flight."""
        return f"{self.name}: {sum(not op.landed for op in self.ops)} in flight"

    def released_by(self) -> str:
        """The TMEM datapath."""
        return "tmem"


def _wait(warp: Warp, operation: str) -> Generator[Blocked, None, None]:
    ops = tuple(op for op in warp.tmem_accesses if op.operation == operation)
    name = operation.replace("tcgen05.", "tcgen05.wait::")
    wait = TmemWait(ops, name)
    if not wait.ready():
        yield wait
    for op in ops:
        if op.registers is not None:
            op.registers.wait()
    warp.tmem_accesses = [op for op in warp.tmem_accesses if op not in ops]
    warp.record(name, {})


def wait_ld(warp: Warp) -> Generator[Blocked, None, None]:
    """``tcgen05.wait::ld``: this warp's loads have landed in registers."""
    return _wait(warp, "tcgen05.ld")


def wait_st(warp: Warp) -> Generator[Blocked, None, None]:
    """``tcgen05.wait::st``: this warp's stores have landed in TMEM."""
    return _wait(warp, "tcgen05.st")
