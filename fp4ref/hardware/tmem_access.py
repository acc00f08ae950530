"""tmem_access: the cells that one ``tcgen05.ld`` or ``st`` of a warp reaches.

A register stands for one cell. With ``.pack::16b`` and ``.unpack::16b`` it stands for
the low halves of two neighbouring cells, so that the access is twice as wide; the other
halves are neither read nor given a value. Source: PTX, Packing and Unpacking; CuTe
``Copy_Traits`` of the operations that end in ``_16b``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from fp4ref.errors import (
    DescriptorFault,
    LaneQuarterViolation,
    MisalignedAddress,
    NotModelled,
)
from fp4ref.hardware.advisory import Advisory
from fp4ref.hardware.sm import Warp
from fp4ref.hardware.tensor_memory import (
    CELL_NBYTES,
    LANE_NBYTES,
    LANES,
    MAX_REPEAT,
    Shape,
    TensorMemory,
    fragment,
    lane_column,
    packed_fragment,
)
from fp4ref.trace import Range

Cells = NDArray[np.int64]


@lru_cache(maxsize=256)
def _cells(
    taddr: int, shape: Shape, repeat: int, half_split: int, packed: bool
) -> tuple[Cells, Cells, tuple[tuple[int, int], ...]]:
    """Return lane and column of every cell, and runs (first, count) of columns."""
    lane, column = lane_column(taddr)
    cells_of = packed_fragment if packed else fragment
    lanes, columns = cells_of(shape, repeat, half_split)
    lanes, columns = lanes + lane, columns + column
    distinct = np.unique(columns)
    runs = np.split(distinct, np.flatnonzero(np.diff(distinct) != 1) + 1)
    return lanes, columns, tuple((int(run[0]), run.size) for run in runs)


@dataclass(frozen=True, slots=True)
class TmemAccess:
    """Where the registers of one access lie.

    Attributes
    ----------
    lanes, columns
        Of each register, (32 threads, registers); with `packed` of its two cells, the
        low half's first, (32 threads, registers, 2).
    blocks
        The same cells as ranges.
    """

    tmem: TensorMemory
    lanes: Cells
    columns: Cells
    blocks: list[Range]
    packed: bool

    @property
    def shape(self) -> tuple[int, ...]:
        """Threads and registers."""
        return self.lanes.shape[:2]

    def load(self) -> tuple[NDArray[np.uint32], NDArray[np.bool_]]:
        """Read every register, and say which have values, (32 threads, registers).

        Raises
        ------
        UninitialisedRead
        """
        known = np.ones(self.shape, np.bool_)
        if not self.packed:
            for block in self.blocks:
                lanes = self.tmem.read_lanes(block)
                if not lanes.all():
                    known &= lanes[self.lanes - block.start // LANE_NBYTES]
            return self.tmem.cells[self.lanes, self.columns], known
        for block in self.blocks:
            self.tmem.read_low_halves(block)
        halves = self.tmem.cells[self.lanes, self.columns] & np.uint32(0xFFFF)
        return halves[..., 0] | halves[..., 1] << np.uint32(16), known

    def store(self, words: NDArray[np.uint32]) -> None:
        """Write every register, (32 threads, registers)."""
        values = words
        if self.packed:
            values = np.stack((words & 0xFFFF, words >> np.uint32(16)), axis=-1)
        for block in self.blocks:
            top, byte = divmod(block.start, LANE_NBYTES)
            first, count = byte // CELL_NBYTES, block.nbytes // CELL_NBYTES
            mine = (self.columns >= first) & (self.columns < first + count)
            cells = np.empty((block.rows, count), np.uint32)
            cells[self.lanes[mine] - top, self.columns[mine] - first] = values[mine]
            if self.packed:
                self.tmem.write_low_halves(block, cells)
            else:
                self.tmem.write(block, cells.view(np.uint8))


def find_access(
    warp: Warp,
    taddr: int,
    shape: Shape,
    repeat: int,
    half_split: int,
    name: str,
    packed: bool = False,
) -> TmemAccess:
    """Name the cells of one ld or st.

    Raises
    ------
    DescriptorFault, MisalignedAddress, LaneQuarterViolation, NotModelled
    TmemAllocationFault
    """
    _check_shape(warp, shape, repeat, name)
    if packed and half_split % 2:
        raise MisalignedAddress(
            f"{name}.{shape} of packed halves with half split {half_split}",
            who=warp.who,
            where=f"taddr {taddr:#010x}",
            rule="a packed register takes two columns, and the second half begins "
            "after whole pairs [Triton issue 10321: misaligned address]",
            remedy="use an even half split",
        )
    lanes, columns, runs = _cells(taddr, shape, repeat, half_split, packed)
    if lanes.min() >= LANES and warp.machine.allows(Advisory.LANES_OF_A_PAIR):
        lanes = lanes % LANES
    top, bottom = int(lanes.min()), int(lanes.max())
    _check_lanes(warp, taddr, f"{name}.{shape}", top, bottom)
    if sum(count for _, count in runs) * (bottom - top + 1) != lanes.size:
        raise DescriptorFault(
            f"{name}.{shape}.x{repeat} with half split {half_split}",
            who=warp.who,
            where=f"taddr {taddr:#010x}",
            rule="the two halves touch different columns",
            remedy=f"use a half split of at least {repeat * (1 + packed)}",
        )
    blocks = []
    for first, count in runs:
        warp.tmem.check_allocated(first, count, warp.who)
        blocks.append(warp.tmem.rectangle(top, bottom - top + 1, first, count))
    return TmemAccess(warp.tmem, lanes, columns, blocks, packed)


def _check_shape(warp: Warp, shape: str, repeat: int, name: str) -> None:
    """Raise `DescriptorFault` for a shape that PTX lacks, or a repeat of it."""
    if shape not in MAX_REPEAT:
        raise DescriptorFault(
            f"{name}.{shape}",
            who=warp.who,
            rule=f"the shapes are {', '.join(MAX_REPEAT)} [PTX: tcgen05.ld]",
            remedy="use one of them",
        )
    limit = MAX_REPEAT[shape]
    if repeat not in (1, 2, 4, 8, 16, 32, 64, 128) or repeat > limit:
        raise DescriptorFault(
            f"{name}.{shape}.x{repeat}",
            who=warp.who,
            rule=f"the repeat of {shape} is a power of two up to {limit} [PTX: {name}]",
            remedy="split the access",
        )


def _check_lanes(warp: Warp, taddr: int, name: str, top: int, bottom: int) -> None:
    """Raise unless the lanes are of the warp's quarter, and begin where they may."""
    quarter = 32 * (warp.index % 4)
    if top < quarter or bottom >= quarter + 32:
        raise LaneQuarterViolation(
            f"{name} touches lanes {top} to {bottom}",
            who=warp.who,
            where=f"taddr {taddr:#010x}",
            rule=f"warp {warp.index} reaches lanes {quarter} to {quarter + 31} "
            "[PTX: tcgen05.ld, access restrictions]",
            remedy="put 32 * (warp % 4) into the lane field",
        )
    if top % 16:
        raise NotModelled(
            f"{name} from lane {top}",
            who=warp.who,
            where=f"taddr {taddr:#010x}",
            rule="accesses start at a multiple of 16 lanes here",
            remedy="start at the quarter's lane 0 or 16",
            gap="tmem-lanes",
        )
