"""sizes: how long a large product takes, from the tiles of a small one.

A run of one tile and one of three say what the first tile takes and every later one; a
longer K says what a k-tile takes in steady state. Every SM has ceil(tiles / SMs) tiles.
SMs share what they load, which so few tiles cannot show: the first tile has memory's
latency, later ones L2's, and memory's rate only bounds the whole: each byte once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from math import ceil
from typing import Any, Final

import numpy as np

from fp4ref.execution.runs import run
from fp4ref.gemm.config import GemmConfig
from fp4ref.hardware.timing import Durations
from fp4ref.lab.timing.graph import Graph
from fp4ref.lab.timing.replay import Replay
from fp4ref.lab.workload import workloads
from fp4ref.parameters import Corner, Parameters
from fp4ref.tensors.quantize import quantize

K: Final = 1024
"""Of the runs; one of twice as much says what a k-tile takes."""
PAIR: Final = {"cta_group": 2, "cluster_m": 2, "tile_m": 256, "tile_n": 256}
SIZES: Final[dict[str, dict[str, Any]]] = {
    # Pairs would leave 116 SMs without a tile; so 128 have one.
    "nvfp4-1024": {"tile_m": 128, "tile_n": 64},
    "nvfp4-4096": PAIR,
    "nvfp4-16384": PAIR,
}


@dataclass(frozen=True, slots=True)
class Size:
    """A product's time on the clock.

    Attributes
    ----------
    seconds
        By corner.
    record_seconds
        Somebody's measurement.
    """

    name: str
    tile: tuple[int, int]
    cta_group: int
    seconds: dict[Corner, float]
    record_seconds: float

    @property
    def inside(self) -> bool:
        """Whether the record lies between the fast and the slow end."""
        found = self.seconds.values()
        return min(found) <= self.record_seconds <= max(found)


@cache
def _graph(name: str, tiles: int, k: int) -> Graph:
    """Record a row of tiles of a workload's configuration."""
    asked = SIZES[name]
    config = GemmConfig.nvfp4(d_format="bf16", **asked)
    random = np.random.default_rng(0)
    shapes = (asked["tile_m"], k), (asked["tile_n"] * tiles, k)
    a, b = (quantize(random.standard_normal(s, dtype=np.float32)) for s in shapes)
    ctas = asked.get("cta_group", 1)
    found = run(a, b, config=config, schedule="timed", sms=ctas, trace=True).trace
    assert found is not None
    return Graph(found)


def _clocks(name: str, durations: Durations) -> float:
    """Return the clocks of a whole product."""
    work = workloads()[name]
    cold = replace(durations, hbm_bandwidth=1e30)
    hot = replace(cold, tma_hbm_latency=durations.tma_l2_latency)

    def took(tiles: int, k: int, d: Durations) -> float:
        return float(Replay(_graph(name, tiles, k), d).end)

    ctas: int = SIZES[name].get("cta_group", 1)
    m, n = SIZES[name]["tile_m"], SIZES[name]["tile_n"]
    waves = ceil(ceil(work.m / m) * ceil(work.n / n) / (int(durations.sms) // ctas))
    memory = work.gmem_nbytes / (durations.hbm_bandwidth * durations.sms)
    if work.k <= K:
        tiles = waves * took(1, work.k, cold)
    else:
        k_tile = (took(1, 2 * K, hot) - took(1, K, hot)) / (K / 256)
        more = k_tile * (work.k - K) / 256
        tile = (took(3, K, hot) - took(1, K, hot)) / 2 + more
        tiles = took(1, K, cold) + more + (waves - 1) * tile
    return float(durations.launch + max(tiles, memory))


def sizes(rows: Parameters) -> tuple[Size, ...]:
    """Return the published NVFP4 products on the clock."""
    found = []
    for name, asked in SIZES.items():
        record = workloads()[name].record_seconds
        assert record is not None
        seconds = {}
        for corner in Corner:
            durations = Durations.of(rows, corner)
            seconds[corner] = _clocks(name, durations) / durations.clock
        shape = asked["tile_m"], asked["tile_n"]
        group = asked.get("cta_group", 1)
        found.append(Size(name, shape, group, seconds, record))
    return tuple(found)
