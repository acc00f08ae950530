"""fragment: which element of a subtile each register of a thread is.

After ``tcgen05.ld.32x32b`` register j of thread t is element (t, j). After two of
``16x256b``, for the upper and the lower 16 lanes, it is one of a pair in a matrix of
8 x 8: that is what ``stmatrix`` takes.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator

import numpy as np

from fp4ref.gemm.epilogue.epilogue_state import Epilogue
from fp4ref.gemm.fusion.node import F32
from fp4ref.gemm.plan.warps import WARP_THREADS
from fp4ref.hardware import tmem
from fp4ref.hardware.sm import Blocked
from fp4ref.layout import swizzled_offsets
from fp4ref.trace import Bytes

MATRIX_ROW_NBYTES = 16


def load_fragment(e: Epilogue, address: int) -> Generator[Blocked, None, F32]:
    """Load 32 rows x 32 columns, whole rows or pairs, and give them as a matrix."""
    plan = e.storage.plan
    if plan.tmem_load_lanes == WARP_THREADS:
        registers = tmem.ld(e.warp, address, "32x32b", plan.subtile_n)
        yield from tmem.wait_ld(e.warp)
        return registers.words.view(np.float32)
    repeat = plan.subtile_n // 8
    halves = [
        tmem.ld(e.warp, address + tmem.address(lane, 0), "16x256b", repeat)
        for lane in (0, plan.tmem_load_lanes)
    ]
    yield from tmem.wait_ld(e.warp)
    lanes, columns = tmem.fragment("16x256b", repeat)
    acc = np.empty((WARP_THREADS, plan.subtile_n), np.float32)
    for first, half in zip((0, plan.tmem_load_lanes), halves, strict=True):
        acc[first + lanes, columns] = half.words.view(np.float32)
    return acc


def matrix_rows(e: Epilogue, rows: Bytes) -> Iterator[tuple[list[int], Bytes]]:
    """Give the offsets and the rows of each ``stmatrix.x4`` of a warp's rows.

    Two matrices of 8 x 8 below each other, and the two on their right.
    """
    at = swizzled_offsets(e.storage.plan.d_swizzle, *rows.shape)
    for half in (0, 16):
        for chunk in range(0, rows.shape[1] // MATRIX_ROW_NBYTES, 2):
            where = [
                (half + 8 * (q % 2) + r, (chunk + q // 2) * MATRIX_ROW_NBYTES)
                for q in range(4)
                for r in range(8)
            ]
            offsets = [int(at[row, byte]) for row, byte in where]
            chunks = [rows[row, byte : byte + MATRIX_ROW_NBYTES] for row, byte in where]
            yield offsets, np.stack(chunks)
