"""Part 7. epilogue_state: what one thread of an epilogue warp holds."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Protocol

from fp4ref.gemm.fusion.node import F32, Node
from fp4ref.gemm.params import GemmParams
from fp4ref.gemm.pipeline import Consumer
from fp4ref.gemm.plan.warps import EPILOGUE_WARPS, WARP_THREADS, WarpRole
from fp4ref.gemm.shared_storage import SharedStorage
from fp4ref.gemm.tile_grid import WorkTile
from fp4ref.hardware.sm import Blocked, Warp
from fp4ref.trace import Bytes


class Output(Protocol):
    """One form of D; its ``repr`` is the C++ type."""

    def write(self, e: Epilogue, work: WorkTile, subtile: int, z: F32) -> Bytes:
        """Return the bytes of 32 rows, row by row."""
        ...


class Fixup(Protocol):
    """How the splits of a tile come together: CUTLASS's ``fixup``."""

    @staticmethod
    def computes_epilogue(e: Epilogue, work: WorkTile) -> bool:
        """Whether this work unit stores the tile."""
        ...

    @staticmethod
    def wait(e: Epilogue, work: WorkTile) -> Generator[Blocked, None, None]:
        """Wait until every split before this one has added its share."""
        ...

    @staticmethod
    def load_add(e: Epilogue, work: WorkTile, subtile: int, acc: F32) -> F32:
        """Return the sum of those shares and this one: (32, 32)."""
        ...

    @staticmethod
    def store(e: Epilogue, work: WorkTile, subtile: int, acc: F32) -> None:
        """Leave the sum so far for the next split."""
        ...

    @staticmethod
    def arrive(e: Epilogue, work: WorkTile) -> Generator[Blocked, None, None]:
        """Let the next split go on."""
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
    fixup: type[Fixup]
    d_stage: int = 0

    @property
    def lane(self) -> int:
        """First TMEM lane, and first row of the tile, that this warp owns."""
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

    def rows(self, work: WorkTile) -> range:
        """Rows of D that this warp finishes; the last ones may lie outside."""
        first = work.m * self.storage.plan.tile_m + self.lane
        return range(first, first + WARP_THREADS)

    def columns(self, work: WorkTile, subtile: int) -> range:
        """Columns of D in a subtile; the last ones may lie outside."""
        plan = self.storage.plan
        first = work.n * plan.tile_n + subtile * plan.subtile_n
        return range(first, first + plan.subtile_n)
