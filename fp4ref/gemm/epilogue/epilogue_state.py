"""Part 7. epilogue_state: what one thread of an epilogue warp holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from fp4ref.gemm.fusion.node import F32, Node
from fp4ref.gemm.params import GemmParams
from fp4ref.gemm.pipeline import Consumer
from fp4ref.gemm.plan.warps import EPILOGUE_WARPS, WARP_THREADS, WarpRole
from fp4ref.gemm.shared_storage import SharedStorage
from fp4ref.gemm.tile_grid import WorkTile
from fp4ref.hardware.sm import Warp
from fp4ref.trace import Bytes


class Output(Protocol):
    """One form of D; its ``repr`` is the C++ type."""

    def write(self, e: Epilogue, work: WorkTile, subtile: int, z: F32) -> Bytes:
        """Return the bytes of 32 rows, row by row."""
        ...


@dataclass(slots=True)
class Epilogue:
    """One epilogue warp's registers, and what it was chosen to do.

    Attributes
    ----------
    d_stage
        Of D's stages, for the next subtile.
    """

    warp: Warp
    storage: SharedStorage
    taddr: int
    accumulator: Consumer
    c: Consumer
    fusion: Node
    output: Output
    d_stage: int = 0

    @property
    def lane(self) -> int:
        """First TMEM lane, and first row of a C or D stage, that this warp owns."""
        return WARP_THREADS * (self.warp.index % EPILOGUE_WARPS)

    @property
    def issues_stores(self) -> bool:
        """Whether this is the warp that talks to TMA."""
        return self.warp.index == WarpRole.EPILOGUE.value

    @property
    def params(self) -> GemmParams:
        """What the launch passes."""
        return self.storage.params

    def c_rows(self, stage: int) -> int:
        """Shared address of this warp's rows of a C stage."""
        first = self.storage.address("c_subtile", stage)
        return first + self.lane * self.storage.plan.c_row_nbytes

    @property
    def tile_row(self) -> int:
        """First row of the tile that this warp has."""
        return self.lane % self.storage.plan.tile_m

    @property
    def part(self) -> int:
        """Part of N that this warp has of its rows."""
        return self.lane // self.storage.plan.tile_m

    def rows(self, work: WorkTile) -> range:
        """Rows of D that this warp finishes; the last ones may lie outside."""
        first = work.m * self.storage.plan.tile_m + self.tile_row
        return range(first, first + WARP_THREADS)

    def column(self, work: WorkTile, subtile: int) -> int:
        """First column of D in a subtile."""
        plan = self.storage.plan
        return work.n * plan.tile_n + self.part * plan.part_n + subtile * plan.subtile_n

    def columns(self, work: WorkTile, subtile: int) -> range:
        """Columns of D in a subtile; the last ones may lie outside."""
        first = self.column(work, subtile)
        return range(first, first + self.storage.plan.subtile_n)
