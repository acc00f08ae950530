"""block_scales: D as E2M1 with block scales SFD."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fp4ref.gemm.epilogue.epilogue_state import Epilogue, RowOutput
from fp4ref.gemm.fusion.node import F32
from fp4ref.gemm.partition import sfd_address
from fp4ref.gemm.tile_grid import WorkTile
from fp4ref.hardware import gmem
from fp4ref.hardware.sm import frame
from fp4ref.layout.scale_factors import ATOM_COLS, ATOM_ROWS
from fp4ref.numerics import ScaleFormat, pack_e2m1, quantize_blocks
from fp4ref.trace import Bytes


@dataclass(frozen=True, repr=False)
class BlockScaleFactorRowStore(RowOutput):
    """CUTLASS's ``Sm100BlockScaleFactorRowStore``, and for an M-major D ``ColStore``.

    A row is one of D in memory, and a thread has it: CUTLASS's threads have a row of M,
    and ask each other for the maximum of 16 elements of a column.
    """

    scale_format: ScaleFormat
    norm_constant: float

    def write(self, e: Epilogue, work: WorkTile, subtile: int, z: F32) -> Bytes:
        """Store SFD; return the bytes of 32 rows: (32, columns / 2). Frame 7.7."""
        codes, scales = quantize_blocks(  # (32, columns) and (32, columns / 16)
            z,
            norm=self.norm_constant,
            scale_format=self.scale_format,
            vec_size=e.storage.plan.sfd_vec_size,
        )
        store_scales(e, work, subtile, scales)
        return pack_e2m1(codes)

    def __repr__(self) -> str:
        """Return the C++ type: the norm constant by its bits."""
        bits = np.float32(self.norm_constant).view(np.uint32)
        name = type(self).__name__
        return f"{name}<{self.scale_format.name}, 0x{bits:08x}>"


@frame("7.7")
def store_scales(e: Epilogue, work: WorkTile, subtile: int, scales: Bytes) -> None:
    """Write the SFD bytes of each row, in the 128x4 layout. Frame 7.7.

    Up to four of a row lie together, and are one store.

    Rows beyond the last are written too: the buffer is padded to whole atoms, and its
    padding must be 0. Beyond that padding there is nothing.
    """
    params, vec_size = e.params, e.storage.plan.sfd_vec_size
    first_column = e.columns(work, subtile).start // vec_size
    rows = e.rows(work, subtile)
    if rows.start // ATOM_ROWS >= -(-params.d_rows // ATOM_ROWS):
        return  # a tile beyond the problem
    for i in range(0, scales.shape[1], ATOM_COLS):
        column = first_column + i
        if column // ATOM_COLS >= -(-params.d_columns // (vec_size * ATOM_COLS)):
            return
        first = sfd_address(params, rows.start, column, work.l)
        addresses = first + 16 * np.arange(len(rows), dtype=np.int64)
        gmem.st(e.warp, addresses, scales[:, i : i + ATOM_COLS])
