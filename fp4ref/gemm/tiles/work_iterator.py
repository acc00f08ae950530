"""Part 2. work_iterator: a role's way through its work units."""

from __future__ import annotations

from collections.abc import Generator

from fp4ref.gemm.tile_grid import WorkTile
from fp4ref.gemm.tiles.scheduler import TileScheduler
from fp4ref.hardware.sm import Blocked


class WorkIterator:
    """The work unit at hand: an output tile, or a split of one.

    `next` comes after the work on it; `next_prefetch` before it, so that the answer
    about the following one arrives meanwhile.
    """

    def __init__(self, scheduler: TileScheduler) -> None:
        self.scheduler = scheduler
        self.tile = scheduler.initial_work()

    @property
    def has_work(self) -> bool:
        """Whether there is a work unit."""
        return self.tile.valid

    def next(self) -> Generator[Blocked, None, None]:
        """Go to the next one."""
        self.tile = yield from self.scheduler.fetch_next_work()

    def next_prefetch(self) -> Generator[Blocked, None, WorkTile]:
        """Go to the next one; return the one to work on."""
        now = self.tile
        yield from self.next()
        return now
