"""partial_sums: sums of a warp's 32 rows and 32 columns, and where they are stored.

Each block of D has one sum, so no order of tiles or warps can change it; the host adds
the blocks up in their order. What lies outside D adds +0.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fp4ref.gemm.fusion.arguments import BLOCK
from fp4ref.gemm.fusion.node import F32, EpilogueWarp, Region
from fp4ref.hardware import gmem
from fp4ref.numerics import add_f32


def sum_of_columns(value: F32) -> F32:
    """Add a row's 32 values, the first ones first: (32,)."""
    total = value[:, 0]
    for j in range(1, value.shape[1]):
        total = add_f32(total, value[:, j])
    return total


def sum_of_lanes(value: F32) -> F32:
    """Add the 32 lanes' values as a butterfly: 16 lanes apart, then 8, 4, 2 and 1."""
    lanes = np.arange(BLOCK)
    for mask in (16, 8, 4, 2, 1):
        value = add_f32(value, value[lanes ^ mask])
    return np.asarray(value[0])


def store_partial(
    e: EpilogueWarp,
    sums: int,
    at: Region,
    extents: tuple[int, int],
    where: tuple[NDArray[np.int64], NDArray[np.int64]],
    values: F32,
) -> None:
    """Store sums at rows and columns of (L, *extents); none beyond them."""
    rows, columns = np.broadcast_arrays(*where)
    inside = (rows < extents[0]) & (columns < extents[1])
    if inside.any():
        index = (at.work.l * extents[0] + rows) * extents[1] + columns
        data = np.ascontiguousarray(values, np.float32).reshape(-1, 1).view(np.uint8)
        gmem.st(e.warp, sums + 4 * index[inside], data[inside])
