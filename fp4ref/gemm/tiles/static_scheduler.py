"""Part 2. static_scheduler: which tile next, by a stride over the grid of tiles."""

from __future__ import annotations

from collections.abc import Generator

from fp4ref.gemm.shared_storage import SharedStorage
from fp4ref.gemm.tile_grid import WorkTile
from fp4ref.gemm.tiles.scheduler import noted
from fp4ref.hardware.sm import Blocked, Warp, frame


class StaticTileScheduler:
    """Persistent clusters, of one CTA or more, take every n-th tile of a cluster."""

    def __init__(self, warp: Warp, storage: SharedStorage) -> None:
        self.warp, self.grid = warp, storage.params.grid
        cta = storage.cta
        self._at = cta.m, cta.n
        self._stride = warp.cta.grid[0] // cta.cluster_m
        self._number = warp.cta.ctaid[0] // cta.cluster_m

    @frame("2.2")
    def initial_work(self) -> WorkTile:
        """Tile number blockIdx.x. Frame 2.2."""
        tile = self.grid.tile_of_number(self._number, *self._at)
        return noted(self.warp, "initial_work", tile)

    @frame("2.4")
    def fetch_next_work(self) -> Generator[Blocked, None, WorkTile]:
        """Tile number + gridDim.x; never blocks. Frame 2.4."""
        self._number += self._stride
        yield from ()
        tile = self.grid.tile_of_number(self._number, *self._at)
        return noted(self.warp, "next_work", tile)
