"""Part 2. tile_grid: the output tiles of the problem, and one of them."""

from __future__ import annotations

from dataclasses import dataclass

from fp4ref.gemm.config import GemmConfig
from fp4ref.trace import Dim3


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
        return cls(
            -(-m // config.tile.m), -(-n // config.tile.n), batches, config.tiles.raster
        )

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
