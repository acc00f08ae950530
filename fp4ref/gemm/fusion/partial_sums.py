"""partial_sums: sums of blocks of 16 rows or columns, and where they are stored.

A block is added as halves: its first eight to its last eight, the first four of these
sums to the others, and so on. Each block of D has one sum, so no order of tiles or
warps can change it; the host adds the blocks up in their order. What lies outside D
adds +0.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fp4ref.gemm.fusion.arguments import BLOCK
from fp4ref.gemm.fusion.node import F32, EpilogueWarp, Region
from fp4ref.hardware import gmem
from fp4ref.numerics import add_f32


def sum_blocks(extent: int) -> int:
    """Blocks of 16 among the rows or columns of D."""
    return -(-extent // BLOCK)


def sum_of_columns(value: F32) -> F32:
    """Add each row's numbers of a block: (lanes, 16) gives (lanes,)."""
    half = BLOCK // 2
    while half:
        value = add_f32(value[:, :half], value[:, half : 2 * half])
        half //= 2
    return value[:, 0]


def sum_of_lanes(value: F32) -> F32:
    """Add the numbers of 16 lanes as a butterfly, 8 lanes apart, then 4, 2 and 1.

    Each lane has the sum of its block: (32, ...).
    """
    lanes = np.arange(len(value))
    for mask in (8, 4, 2, 1):
        value = add_f32(value, value[lanes ^ mask])
    return value


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
