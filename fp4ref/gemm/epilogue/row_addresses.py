"""row_addresses: where a warp's rows of a half lie in D, without a tensor map."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fp4ref.gemm.epilogue.epilogue_state import Epilogue
from fp4ref.gemm.epilogue.staged_rows import half_column
from fp4ref.gemm.partition import pitch_elements
from fp4ref.gemm.plan.staging_values import ELEMENT_NBYTES, HALF_N
from fp4ref.gemm.plan.warps import WARP_THREADS
from fp4ref.gemm.tile_grid import WorkTile

Addresses = NDArray[np.int64]


def d_addresses(e: Epilogue, work: WorkTile, half: int) -> Addresses:
    """Global address of each of this warp's 32 rows of a half; some may lie outside."""
    params, plan = e.params, e.storage.plan
    pitch = pitch_elements(params.d_columns, plan.d_type) * ELEMENT_NBYTES
    rows = work.l * params.d_rows + e.rows(work, 0).start + np.arange(WARP_THREADS)
    return params.d_address + rows * pitch + half_column(e, work, half) * ELEMENT_NBYTES


def row_nbytes(e: Epilogue, work: WorkTile, half: int) -> int:
    """Bytes of a row of a half that are of D, with the padding of its last 16."""
    pitch = pitch_elements(e.params.d_columns, e.storage.plan.d_type)
    columns = min(HALF_N, pitch - half_column(e, work, half))
    return max(columns, 0) * ELEMENT_NBYTES


def rows_inside(e: Epilogue, work: WorkTile) -> int:
    """Return how many of this warp's rows are of D: the first ones."""
    return min(max(e.params.d_rows - e.rows(work, 0).start, 0), WARP_THREADS)
