"""Part 2. tile_grid: the output tiles of the problem, and one of them."""

from __future__ import annotations

from dataclasses import dataclass

from fp4ref.gemm.config import GemmConfig
from fp4ref.trace import Dim3


@dataclass(frozen=True, slots=True)
class WorkTile:
    """CUTLASS's ``WorkTileInfo``: tile indices, and whether there is work.

    Attributes
    ----------
    split
        Which of the tile's slices of K.
    """

    m: int
    n: int
    l: int  # noqa: E741  the field's name in CUTLASS
    valid: bool = True
    split: int = 0


NO_WORK = WorkTile(0, 0, 0, False)


@dataclass(frozen=True, slots=True)
class TileGrid:
    """Output tiles of the problem, a CTA for each of their splits. Frame 2.1.

    Attributes
    ----------
    cluster
        CTAs of a cluster along M and N. The grid is padded to whole clusters: a CTA
        beyond the problem loads for its cluster, and stores nothing.
    raster_swizzle
        Clusters of a band of the other dimension that are done together; 1 for none.
    splits
        Work units of a tile. They follow each other along z, so that each starts
        after the ones before it: it waits for their sums.
    """

    tiles_m: int
    tiles_n: int
    batches: int
    raster: str
    cluster: tuple[int, int] = (1, 1)
    raster_swizzle: int = 1
    splits: int = 1

    @classmethod
    def of(cls, m: int, n: int, batches: int, config: GemmConfig) -> TileGrid:
        """Cover an (m, n) output with tiles."""
        asked, order = config.cluster, config.tiles
        rows = config.tile.m // asked.cta_group
        return cls(
            -(-m // rows),
            -(-n // config.tile.n),
            batches,
            order.raster,
            (asked.cluster_m, asked.cluster_n),
            order.raster_swizzle,
            order.splits,
        )

    @property
    def clusters(self) -> tuple[int, int]:
        """Clusters along the raster dimension, and along the other one."""
        cluster_m, cluster_n = self.cluster
        m, n = -(-self.tiles_m // cluster_m), -(-self.tiles_n // cluster_n)
        return (m, n) if self.raster == "m" else (n, m)

    @property
    def dims(self) -> Dim3:
        """Grid extents in CTAs: x runs along the raster dimension."""
        major, minor = self.clusters
        units = self.batches * self.splits
        return major * self.cluster[0], minor * self.cluster[1], units

    @property
    def count(self) -> int:
        """Tiles in all."""
        return self.tiles_m * self.tiles_n * self.batches

    def tile(self, ctaid: Dim3) -> WorkTile:
        """Tile of a CTA index. Frame 2.2.

        A cluster keeps its shape whatever the raster: only its place is exchanged.
        """
        (x, y, z), (cluster_m, cluster_n) = ctaid, self.cluster
        major, in_m = divmod(x, cluster_m)
        minor, in_n = divmod(y, cluster_n)
        valid = major < self.clusters[0] and minor < self.clusters[1]
        major, minor = self.swizzled(major, minor)
        m, n = (major, minor) if self.raster == "m" else (minor, major)
        batch, split = divmod(z, self.splits)
        m, n = m * cluster_m + in_m, n * cluster_n + in_n
        return WorkTile(m, n, batch, valid, split)

    def swizzled(self, major: int, minor: int) -> tuple[int, int]:
        """Exchange the places of clusters in bands of `raster_swizzle`.

        Those beyond the last whole square stay. Source: CUTLASS
        ``PersistentTileSchedulerSm100::swizzle_and_rasterize``.
        """
        size = self.raster_swizzle
        majors, minors = (extent // size for extent in self.clusters)
        if major >= majors * size or minor >= minors * size:
            return major, minor
        return (
            major // size + majors * (minor % size),
            major % size + minor // size * size,
        )

    def ctaid(self, m: int, n: int, batch: int = 0, split: int = 0) -> Dim3:
        """CTA index of a split of a tile."""
        cluster_m, cluster_n = self.cluster
        (m, in_m), (n, in_n) = divmod(m, cluster_m), divmod(n, cluster_n)
        major, minor = self._unswizzled(*((m, n) if self.raster == "m" else (n, m)))
        z = batch * self.splits + split
        return major * cluster_m + in_m, minor * cluster_n + in_n, z

    @property
    def padded(self) -> tuple[int, int]:
        """Tiles along M and N, those beyond the problem included."""
        major, minor = self.clusters
        m, n = (major, minor) if self.raster == "m" else (minor, major)
        return m * self.cluster[0], n * self.cluster[1]

    @property
    def output_tiles(self) -> int:
        """Tiles in all, those beyond the problem included."""
        tiles_m, tiles_n = self.padded
        return tiles_m * tiles_n * self.batches

    def output_tile_index(self, work: WorkTile) -> int:
        """Number of an output tile, whatever the raster: equal for its splits."""
        tiles_m, tiles_n = self.padded
        return work.m + tiles_m * (work.n + tiles_n * work.l)

    def _unswizzled(self, major: int, minor: int) -> tuple[int, int]:
        """Return whom `swizzled` puts there."""
        size = self.raster_swizzle
        majors, minors = (extent // size for extent in self.clusters)
        if major >= majors * size or minor >= minors * size:
            return major, minor
        band, row = divmod(major, majors)
        return row * size + minor % size, minor // size * size + band

    def tile_of_number(self, number: int, in_m: int = 0, in_n: int = 0) -> WorkTile:
        """Tile of a cluster's linear number, for the static scheduler.

        Of its CTA at (`in_m`, `in_n`).
        """
        major, minor = self.clusters
        if number >= major * minor * self.batches * self.splits:
            return NO_WORK
        x = number % major * self.cluster[0] + in_m
        y = number // major % minor * self.cluster[1] + in_n
        return self.tile((x, y, number // (major * minor)))
