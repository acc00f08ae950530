"""Parts 1 and 7. staging_values: what follows where a warp brings its own rows of D."""

from __future__ import annotations

from fp4ref.gemm.config import GemmConfig
from fp4ref.gemm.plan.warps import WARP_THREADS
from fp4ref.gemm.why import deduced
from fp4ref.hardware.tmem import LANES as TMEM_LANES

_DOCUMENT_003 = "document 003, F24"

HALF_N = 128
"""Columns of a half: what a warp stages at a time."""
ELEMENT_NBYTES = 2
"""Of BF16."""
ROW_NBYTES = HALF_N * ELEMENT_NBYTES
PADDED_ROW_NBYTES = ROW_NBYTES + 16
"""With padding, so that the rows of eight threads begin in different banks."""


class StagingValues:
    """The part of a `Plan` that the staging of D decides."""

    config: GemmConfig

    @deduced("asked: staging={c.staging}", _DOCUMENT_003)
    def staged(self) -> bool:
        """Whether each epilogue warp brings its own rows of D to global memory."""
        return self.config.staging.staging != "tiles"

    @deduced(f"{{c.tile_n}} columns in halves of {HALF_N}, if staged", _DOCUMENT_003)
    def staging_halves(self) -> int:
        """Pieces of a warp's rows, each with shared memory of its own."""
        return self.config.tile.n // HALF_N if self.staged else 0

    @deduced(f"{HALF_N} columns in subtiles of {{c.subtile_n}}", _DOCUMENT_003)
    def half_subtiles(self) -> int:
        """Subtiles of a half."""
        return HALF_N // self.config.epilogue.subtile_n

    @deduced(
        f"{HALF_N} columns of two bytes, {ROW_NBYTES}; {PADDED_ROW_NBYTES} with "
        "padding where a row is read or copied by itself; staging={c.staging}",
        _DOCUMENT_003,
    )
    def staging_row_nbytes(self) -> int:
        """Shared memory of a row of a half."""
        wanted = {"padded": PADDED_ROW_NBYTES, "bulk": PADDED_ROW_NBYTES}
        wanted["swizzled"] = ROW_NBYTES
        return wanted.get(self.config.staging.staging, 0)

    @deduced(
        f"{TMEM_LANES} rows of {{p.staging_row_nbytes}} bytes, {WARP_THREADS} a warp",
        _DOCUMENT_003,
    )
    def staging_half_nbytes(self) -> int:
        """Shared memory of a half, of all warps."""
        return TMEM_LANES * self.staging_row_nbytes

    @deduced("staging={c.staging}: only boxes go by a tensor map", _DOCUMENT_003)
    def addresses_d(self) -> bool:
        """Whether D is stored by its address, and not by its tensor map."""
        return self.config.staging.staging in ("padded", "bulk", "none")
