"""tiling: what a CTA of these kernels computes, and with how many warps and stages."""

from typing import Any, NamedTuple

WARPS = 4
STAGES = 2
TILE_N = 128
BLOCK = 16
"""K elements under one scale."""


class Tiling(NamedTuple):
    """An MMA, its tile, and the ranks of a cluster's CTAs, its peers first."""

    mma: Any
    tile: tuple[int, int, int]
    ranks: Any


class Place(NamedTuple):
    """A CTA: its peer of the MMA, its rank in the cluster, and its tile of D."""

    peer: Any
    rank: Any
    tile_m: Any
    tile_n: Any
