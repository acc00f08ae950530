"""Part 7. epilogue_state: what one thread of an epilogue warp holds."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Protocol

from fp4ref.gemm.fusion.node import F32, Node
from fp4ref.gemm.params import GemmParams
from fp4ref.gemm.pipeline import Consumer, PipelineState
from fp4ref.gemm.plan.warps import EPILOGUE_WARPS, WARP_THREADS, WarpRole
from fp4ref.gemm.shared_storage import SharedStorage
from fp4ref.gemm.tile_grid import WorkTile
from fp4ref.hardware import smem
from fp4ref.hardware.sm import Blocked, Warp
from fp4ref.layout.swizzle import swizzle_tile
from fp4ref.trace import Bytes


class ElementWise(Protocol):
    """Where the formula is computed."""

    @staticmethod
    def place(e: Epilogue, acc: F32) -> F32:
        """Take 32 rows of an accumulator's subtile, give 32 rows of D's."""
        ...


class Output(Protocol):
    """One form of D; its ``repr`` is the C++ type."""

    def write(self, e: Epilogue, work: WorkTile, subtile: int, z: F32) -> Bytes:
        """Return the bytes of 32 rows, row by row."""
        ...

    def put(self, e: Epilogue, address: int, rows: Bytes) -> None:
        """Write them to shared memory, swizzled."""
        ...


class RowOutput:
    """An output of which each thread writes its own row."""

    def put(self, e: Epilogue, address: int, rows: Bytes) -> None:
        """Write 32 rows to shared memory, swizzled, panel by panel."""
        plan = e.storage.plan
        row_nbytes = plan.d_box_row_nbytes
        for first in range(0, rows.shape[1], row_nbytes):
            panel = rows[:, first : first + row_nbytes]
            block = swizzle_tile(plan.d_swizzle, panel)
            smem.st(e.warp, address, block)
            address += block.size * plan.lanes // WARP_THREADS


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


class Staging(Protocol):
    """How a warp brings a half of its rows of D to global memory; ``repr`` is C++."""

    def acquire(self, e: Epilogue) -> Generator[Blocked, None, None]:
        """Wait until the next half may be written."""
        ...

    def put(
        self, e: Epilogue, work: WorkTile, half: int, i: int, rows: Bytes
    ) -> Generator[Blocked, None, None]:
        """Write subtile `i` of a half: (32, bytes of a row)."""
        ...

    def written(
        self, e: Epilogue, work: WorkTile, half: int
    ) -> Generator[Blocked, None, None]:
        """Go on when all of a half is there."""
        ...

    def store_part(
        self, e: Epilogue, work: WorkTile, half: int, i: int
    ) -> Generator[Blocked, None, None]:
        """Store what falls to the time in which subtile `i` of another half comes."""
        ...

    def tail(self, e: Epilogue) -> Generator[Blocked, None, None]:
        """Wait until nothing reads shared memory."""
        ...


@dataclass(slots=True)
class Epilogue:
    """One epilogue warp's registers, and what it was chosen to do.

    Attributes
    ----------
    store
        Stage of D that is stored next: CUTLASS's ``store_pipe_producer_state``.
    load_wait
        Stage of C that is waited for next, where D is written to it.
    """

    warp: Warp
    storage: SharedStorage
    taddr: int
    accumulator: Consumer
    c: Consumer
    fusion: Node
    output: Output
    fixup: type[Fixup]
    element_wise: type[ElementWise]
    store: PipelineState = field(default_factory=lambda: PipelineState(phase=1))
    load_wait: PipelineState = field(default_factory=PipelineState)

    @property
    def lane(self) -> int:
        """First TMEM lane, and first row of a C or D stage, that this warp owns."""
        return WARP_THREADS * (self.warp.index % EPILOGUE_WARPS)

    @property
    def issues_stores(self) -> bool:
        """Whether this is the warp that talks to TMA."""
        return self.warp.index == self.storage.plan.first_warp(WarpRole.EPILOGUE)

    @property
    def params(self) -> GemmParams:
        """What the launch passes."""
        return self.storage.params

    @property
    def store_releases_c(self) -> bool:
        """Whether C's stage is given back by the store of D that lies in it."""
        return self.storage.plan.store_releases_c

    def c_rows(self, stage: int) -> range:
        """Shared addresses of this warp's rows of a C stage, one for each panel."""
        plan = self.storage.plan
        first = self.storage.address("c_subtile", stage)
        first += self.lane * plan.c_box_row_nbytes
        panel_nbytes = plan.lanes * plan.c_box_row_nbytes
        return range(first, first + plan.c_subtile_nbytes, panel_nbytes)

    def is_inside(self, work: WorkTile) -> bool:
        """Whether the tile is one of the problem, and not of a padded cluster."""
        plan, params = self.storage.plan, self.params
        return work.m * plan.tile_m < params.m and work.n * plan.tile_n < params.n

    @property
    def tile_row(self) -> int:
        """First row of the tile that this warp has."""
        return self.lane % self.storage.plan.tile_m

    @property
    def part(self) -> int:
        """Part of N that this warp has of its rows."""
        return self.lane // self.storage.plan.tile_m

    def _accumulated(self, work: WorkTile, subtile: int) -> tuple[int, int]:
        """Row and column of its first accumulator in what the kernel multiplies."""
        plan = self.storage.plan
        column = self.part * plan.part_n + subtile * plan.subtile_n
        return work.m * plan.tile_m + self.tile_row, work.n * plan.tile_n + column

    def rows(self, work: WorkTile, subtile: int) -> range:
        """Rows of D that this warp finishes; the last ones may lie outside."""
        first = self._accumulated(work, subtile)[self.storage.plan.transposes]
        return range(first, first + WARP_THREADS)

    def columns(self, work: WorkTile, subtile: int) -> range:
        """Columns of D in a subtile; the last ones may lie outside."""
        plan = self.storage.plan
        first = self._accumulated(work, subtile)[not plan.transposes]
        return range(first, first + plan.subtile_n)
