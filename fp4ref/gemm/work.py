"""Part 2. work: a role's way through its tiles."""

from __future__ import annotations

from collections.abc import Generator

from fp4ref.gemm.parts import Parts
from fp4ref.gemm.shared_storage import SharedStorage
from fp4ref.gemm.tile_grid import WorkTile
from fp4ref.hardware.sm import Blocked, Warp


class WorkIterator:
    """The tile at hand.

    `next` comes after the work on it; `next_prefetch` before it, so that the answer
    about the following tile arrives meanwhile.
    """

    def __init__(self, warp: Warp, storage: SharedStorage, parts: Parts) -> None:
        self.scheduler = parts.tile_scheduler(warp, storage)
        self.tile = self.scheduler.initial_work()

    @property
    def has_work(self) -> bool:
        """Whether there is a tile."""
        return self.tile.valid

    def next(self) -> Generator[Blocked, None, None]:
        """Go to the next tile."""
        self.tile = yield from self.scheduler.fetch_next_work()

    def next_prefetch(self) -> Generator[Blocked, None, WorkTile]:
        """Go to the next tile; return the one to work on."""
        now = self.tile
        yield from self.next()
        return now
