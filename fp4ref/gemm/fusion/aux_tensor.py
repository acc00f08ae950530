"""aux_tensor: where a tensor of D's shape lies in global memory.

Its rows are padded to whole accesses of 16 bytes. It goes by plain loads and stores, as
CUTLASS's ``Sm90AuxLoad`` and ``Sm90AuxStore`` of no stages do: each thread has a row of
the subtile, and an aux tensor takes no shared memory from the mainloop.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fp4ref.gemm.fusion.arguments import row_nbytes
from fp4ref.gemm.fusion.node import EpilogueWarp, Region

Addresses = NDArray[np.int64]
WORD_NBYTES = 4


def aux_addresses(
    e: EpilogueWarp, at: Region, tensor: int, element: str, bits: int
) -> tuple[NDArray[np.bool_], Addresses]:
    """Return which of a warp's rows are of D, and where theirs begin in the subtile."""
    rows = np.arange(at.rows.start, at.rows.stop)
    pitch = row_nbytes(element, e.params.d_columns)
    row = at.work.l * e.params.d_rows + rows
    return rows < e.params.d_rows, tensor + row * pitch + at.columns.start * bits // 8
