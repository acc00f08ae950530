"""Part 2. split_k: the k-tiles of an output tile, divided over several work units.

CUTLASS's ``PersistentTileSchedulerSm90StreamK`` in its split-K decomposition: where the
division leaves a rest, the first splits have one k-tile more. With more splits than
k-tiles the last ones are empty slices, which add nothing.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SplitK:
    """Which k-tiles belong to which split.

    Attributes
    ----------
    k_tiles
        Of the whole output tile.
    splits
        Work units that share them.
    """

    k_tiles: int
    splits: int = 1

    def k_idx(self, split: int) -> int:
        """First k-tile of a split: CUTLASS's ``WorkTileInfo::K_idx``."""
        whole, rest = divmod(self.k_tiles, self.splits)
        return split * whole + min(split, rest)

    def k_tile_count(self, split: int) -> int:
        """k-tiles of a split: ``WorkTileInfo::k_tile_count``; 0 of an empty slice."""
        whole, rest = divmod(self.k_tiles, self.splits)
        return whole + (split < rest)

    def is_final_split(self, split: int) -> bool:
        """Whether it has the last k-tile: this one alone computes the epilogue.

        An empty slice ends there too, and has nothing to give.
        """
        count = self.k_tile_count(split)
        return count > 0 and self.k_idx(split) + count == self.k_tiles
