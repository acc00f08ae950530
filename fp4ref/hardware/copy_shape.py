"""copy_shape: which lanes of TMEM a ``tcgen05.cp`` fills with which rows.

==========================  ====  ==========================================
shape                       rows  where row r lands
==========================  ====  ==========================================
``128x256b``, ``128x128b``  128   lane r
``64x128b.warpx2::02_13``   64    lanes r and r + 64
``64x128b.warpx2::01_23``   64    lanes r and r + 32, from row 32 on 32 more
``32x128b.warpx4``          32    lanes r, r + 32, r + 64 and r + 96
``4x256b``                  4     lane 32 r, counted from the address
==========================  ====  ==========================================

Rows have 32 or 16 bytes. The source is a K-major tile, as an operand of an MMA is.
Source: PTX, tcgen05.cp; CuTe ``Copy_Traits`` of the UTCCP operations and
``get_utccp_smem_desc_tensor``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fp4ref.hardware.tensor_memory import (
    CELL_NBYTES,
    LANE_NBYTES,
    LANES,
    TensorMemory,
)
from fp4ref.trace import Bytes, Range

QUARTER = 32
"""Lanes that one warp of four reaches."""


class CopyShape(NamedTuple):
    """Rows of the source, their bytes, and the lanes an address may name."""

    rows: int
    row_nbytes: int
    lane_choices: range = range(1)

    @property
    def columns(self) -> int:
        """Columns that the copy fills."""
        return self.row_nbytes // CELL_NBYTES

    @property
    def nbytes(self) -> int:
        """Bytes that are copied."""
        return self.rows * self.row_nbytes


COPY_SHAPES = {
    "128x256b": CopyShape(128, 32),
    "4x256b": CopyShape(4, 32, range(QUARTER)),
    "128x128b": CopyShape(128, 16),
    "64x128b.warpx2::02_13": CopyShape(64, 16),
    "64x128b.warpx2::01_23": CopyShape(64, 16),
    "32x128b.warpx4": CopyShape(32, 16),
}
"""By PTX's words."""


def copy_target(shape: str, tmem: TensorMemory, lane: int, column: int) -> Range:
    """Cells that a copy fills, one row of the range for each lane."""
    if shape == "4x256b":
        nbytes = COPY_SHAPES[shape].row_nbytes
        start = tmem.rectangle(lane, 1, column, 1).start
        return Range(tmem.space, start, nbytes, 4, QUARTER * LANE_NBYTES)
    return tmem.rectangle(0, LANES, column, COPY_SHAPES[shape].columns)


def rows_by_lane(shape: str) -> NDArray[np.int64]:
    """Row of the source for each row of the target."""
    lane = np.arange(LANES)
    if shape == "32x128b.warpx4":
        return lane % QUARTER
    if shape == "64x128b.warpx2::02_13":
        return lane % 64
    if shape == "64x128b.warpx2::01_23":
        return lane // 64 * QUARTER + lane % QUARTER
    return lane[: COPY_SHAPES[shape].rows]


def copied(shape: str, rows: Bytes) -> Bytes:
    """Return what lands, from the rows of the source."""
    found: Bytes = rows[rows_by_lane(shape)]
    return found
