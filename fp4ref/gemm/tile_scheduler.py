"""Part 2. tile_scheduler: which output tile next, by a static stride or by CLC.

Both schedulers have one interface, so the roles do not change. With CLC the grid holds
every tile; only as many CTAs as there are SMs start, and each takes over tiles of CTAs
that never start. The scheduler warp asks; every working warp reads the same answer.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Protocol

from fp4ref.gemm.config import GemmConfig
from fp4ref.gemm.pipeline import Consumer, Producer, Ring, arrive_on_empty
from fp4ref.gemm.plan.warps import WARP_THREADS
from fp4ref.hardware import clc, mbarrier, smem
from fp4ref.hardware.sm import Blocked, Dim3, Warp


@dataclass(frozen=True, slots=True)
class WorkTile:
    """CUTLASS's ``WorkTileInfo``: tile indices, and whether there is work."""

    m: int
    n: int
    l: int  # noqa: E741  the field's name in CUTLASS
    valid: bool = True


NO_WORK = WorkTile(0, 0, 0, False)


@dataclass(frozen=True, slots=True)
class TileGrid:
    """Output tiles of the problem. Frame 2.1."""

    tiles_m: int
    tiles_n: int
    batches: int
    raster: str

    @classmethod
    def of(cls, m: int, n: int, batches: int, config: GemmConfig) -> TileGrid:
        """Cover an (m, n) output with tiles."""
        return cls(-(-m // 128), -(-n // config.tile_n), batches, config.raster)

    @property
    def dims(self) -> Dim3:
        """Grid extents: x runs along the raster dimension."""
        if self.raster == "m":
            return self.tiles_m, self.tiles_n, self.batches
        return self.tiles_n, self.tiles_m, self.batches

    @property
    def count(self) -> int:
        """Tiles in all."""
        return self.tiles_m * self.tiles_n * self.batches

    def tile(self, ctaid: Dim3) -> WorkTile:
        """Tile of a CTA index. Frame 2.2."""
        x, y, z = ctaid
        m, n = (x, y) if self.raster == "m" else (y, x)
        return WorkTile(m, n, z, m < self.tiles_m and n < self.tiles_n)

    def ctaid(self, m: int, n: int, batch: int = 0) -> Dim3:
        """CTA index of a tile."""
        return (m, n, batch) if self.raster == "m" else (n, m, batch)

    def tile_of_number(self, number: int) -> WorkTile:
        """Tile of a linear number, for the static scheduler."""
        if number >= self.count:
            return NO_WORK
        x, y, _ = self.dims
        return self.tile((number % x, number // x % y, number // (x * y)))


class TileScheduler(Protocol):
    """What a role needs: the first tile, then the next one."""

    def initial_work(self) -> WorkTile:
        """Tile that the CTA's own index stands for."""
        ...

    def fetch_next_work(self) -> Generator[Blocked, None, WorkTile]:
        """Return the next tile, or `NO_WORK`."""
        ...


class StaticTileScheduler:
    """Persistent CTAs take every gridDim-th tile."""

    def __init__(self, warp: Warp, grid: TileGrid) -> None:
        self._warp, self._grid = warp, grid
        self._stride = warp.cta.grid[0]
        self._number = warp.cta.ctaid[0]

    def initial_work(self) -> WorkTile:
        """Tile number blockIdx.x. Frame 2.2."""
        return _initial(self._warp, self._grid.tile_of_number(self._number))

    def fetch_next_work(self) -> Generator[Blocked, None, WorkTile]:
        """Tile number + gridDim.x; never blocks. Frame 2.4."""
        self._number += self._stride
        work = self._grid.tile_of_number(self._number)
        with self._warp.frame("2.4"):
            _note_work(self._warp, "tile_scheduler.next_work", work)
        yield from ()
        return work


class ClcTileScheduler:
    """Reads the answers that the scheduler warp asked for."""

    def __init__(
        self, warp: Warp, grid: TileGrid, ring: Ring, responses: tuple[int, ...]
    ) -> None:
        self._warp, self._grid = warp, grid
        self._responses = responses
        self._consumer = Consumer(warp, ring, arrive_on_empty(WARP_THREADS))

    def initial_work(self) -> WorkTile:
        """Tile of blockIdx. Frame 2.2."""
        return _initial(self._warp, self._grid.tile(self._warp.cta.ctaid))

    def fetch_next_work(self) -> Generator[Blocked, None, WorkTile]:
        """Wait for the answer, read it, give its slot back. Frames 1.10 and 2.4."""
        warp = self._warp
        with warp.frame("2.4", "1.10"):
            with (yield from self._consumer.wait()) as stage:
                response = smem.ld(
                    warp, self._responses[stage.index], clc.RESPONSE_NBYTES
                )
                # The next try_cancel overwrites the slot through the async proxy.
                smem.fence_proxy_async(warp)
            canceled = clc.is_canceled(response)
            work = (
                self._grid.tile(clc.get_first_ctaid(response)) if canceled else NO_WORK
            )
            _note_work(warp, "tile_scheduler.next_work", work)
        return work


def _initial(warp: Warp, work: WorkTile) -> WorkTile:
    with warp.frame("2.2"):
        _note_work(warp, "tile_scheduler.initial_work", work)
    return work


def _note_work(warp: Warp, operation: str, work: WorkTile) -> None:
    warp.note(operation, m=work.m, n=work.n, l=work.l, valid=work.valid)


def request_work(
    warp: Warp, producer: Producer, responses: tuple[int, ...]
) -> Generator[Blocked, None, None]:
    """Ask for one more tile: ``advance_to_next_work``. Frame 1.10."""
    with warp.frame("1.10"), (yield from producer.acquire()) as stage:
        mbarrier.arrive_expect_tx(warp, stage.full, clc.RESPONSE_NBYTES)
        clc.try_cancel(warp, responses[stage.index], stage.full)


def scheduler_warp(
    warp: Warp,
    scheduler: TileScheduler,
    throttle: Consumer,
    producer: Producer,
    responses: tuple[int, ...],
) -> Generator[Blocked, None, None]:
    """Ask for a tile each time the load warp has started one.

    The throttle keeps it from taking tiles that another SM would do sooner.
    """
    work = scheduler.initial_work()
    while work.valid:
        with (yield from throttle.wait()):
            pass
        yield from request_work(warp, producer, responses)
        work = yield from scheduler.fetch_next_work()
    yield from producer.tail()
