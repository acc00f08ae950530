"""two_queues: document 003's kernel as two queues, and the cycles of a steady tile.

A pair of CTAs works off its tiles. The MMA warp waits for an accumulator, then for the
first stage, then issues a tile's MMAs; the epilogue's warps wait for the accumulator,
read it, and give it back. There are two accumulators, so either side may be one tile
ahead, and each waits for the other now and then, because no two tiles take the same
time.

    loads       in order; a stage is asked for when its last MMAs are done, takes its
                bytes at the rate of fills, and comes after the latency
    MMAs        in order; a stage takes its interval, or longer while the epilogue sends
                bytes through shared memory
    phase 1     a warp's own work, and the bytes of all warps of its SM through L1
    phase 2B    rows, one after another, each as long as a load from shared memory

Durations are those of the machine's clock (`fp4ref.hardware.timing`). What is not
published, or only as a wide range, is fitted to the baseline: `fp4ref.lab.fitted`. A
warp's scheduler issues one instruction a clock.
"""

from __future__ import annotations

import random
from bisect import insort
from dataclasses import dataclass, field
from functools import cache
from typing import Final, NamedTuple

from fp4ref.hardware.timing import Durations
from fp4ref.lab.fitted import Fitted
from fp4ref.lab.workload import K_NBYTES, MMAS_A_STAGE

RUNS: Final = 3
"""Pairs that are worked out, each with other tiles that take longer."""
WARM_TILES: Final = 8
"""Tiles that are left out of the means: the queues are still filling."""
ROWS: Final = 128
ROWS_A_WARP: Final = 32
BF16_NBYTES: Final = 2
_LEAST_FREE: Final = 0.05
"""Share of the port that the MMAs get at least."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """What the model knows of a kernel.

    Attributes
    ----------
    tile_n, stages, epilogue_warps
        Columns of a tile, stages of the ring, and warps of one CTA's epilogue.
    passes_through_l1
        Times that phase 1 sends a tile's bytes of BF16 through L1: added, staged,
        half of them read and stored.
    store_passes
        The same of phase 2B.
    saved
        Instructions that phase 1 of 32 rows and 256 columns no longer has.
    to_first_mma, to_last_mma
        Instructions from a stage's barrier to its first MMA, and on to its commit.
    early_release
        Whether the accumulator is given back after phase 1, and not after phase 2B.
    bulk_store
        Clocks that a warp takes to issue the copies of phase 2B; 0 if it copies rows.
    switch
        Clocks that the load warp takes between two tiles.
    ring_restarts
        Whether each tile begins in stage 0, as the document's stage of a k-iteration
        says; else the ring runs on.
    """

    tile_n: int = 256
    k_iterations: int = 6
    stages: int = 4
    epilogue_warps: int = 4
    tiles: int = 147
    passes_through_l1: float = 3.0
    store_passes: float = 1.0
    saved: float = 0.0
    to_first_mma: float = 26.0
    to_last_mma: float = 42.5
    early_release: bool = False
    bulk_store: float = 0.0
    switch: float = 20.0
    ring_restarts: bool = True

    @property
    def tile_nbytes(self) -> int:
        """Bytes of D of one CTA's tile."""
        return ROWS * self.tile_n * BF16_NBYTES

    @property
    def stage_nbytes(self) -> int:
        """Bytes of a stage in one CTA: its rows of A, and its half of B."""
        return (ROWS + self.tile_n // 2) * K_NBYTES * MMAS_A_STAGE


@dataclass(slots=True)
class _Port:
    """What the epilogue of one SM sends through shared memory, by time."""

    steps: list[tuple[float, float]] = field(default_factory=list)
    at: int = 0
    load: float = 0.0

    def add(self, start: float, end: float, clocks: float) -> None:
        """Take so many clocks of the port, evenly from start to end."""
        if end > start and clocks > 0:
            share = clocks / (end - start)
            insort(self.steps, (start, share), lo=self.at)
            insort(self.steps, (end, -share), lo=self.at)

    def end_of(self, start: float, compute: float, port: float) -> float:
        """When a stage's MMAs end that need so much of the pipe and of the port."""
        now, left = start, 1.0
        while self.at < len(self.steps) and self.steps[self.at][0] <= now:
            self.load += self.steps[self.at][1]
            self.at += 1
        while True:
            free = max(_LEAST_FREE, 1.0 - self.load)
            pace = 1.0 / max(compute, port / free, 1e-9)
            done = now + left / pace
            if self.at >= len(self.steps) or self.steps[self.at][0] >= done:
                return done
            left -= (self.steps[self.at][0] - now) * pace
            now = self.steps[self.at][0]
            self.load += self.steps[self.at][1]
            self.at += 1


class _Pair:
    """One pair of CTAs at work."""

    def __init__(
        self, kernel: Kernel, clock: Durations, fitted: Fitted, seed: int
    ) -> None:
        self.kernel, self.clock, self.fitted = kernel, clock, fitted
        self.rng = random.Random(seed)
        self.port = _Port()
        self.spans: list[Span] = []
        counts = ("TMA0 wait", "K-loop", "epi wait", "ml wait", "phase 1")
        self.sums = dict.fromkeys(counts, 0.0)
        self.stage_free = [0.0] * kernel.stages
        self.issued = self.filled = self.mma_free = self.warp = 0.0
        self.stage = 0
        self.warps = [0.0] * (2 * kernel.epilogue_warps)
        rows = ROWS // kernel.epilogue_warps / ROWS_A_WARP
        width = kernel.tile_n / 256
        every = kernel.tile_nbytes / clock.smem_bandwidth
        own = fitted.own_work - kernel.saved
        self.through_l1 = kernel.passes_through_l1 * every
        self.phase_1 = own * rows * width + self.through_l1
        self.store = kernel.store_passes * every
        self.phase_2b = kernel.bulk_store * rows
        if not kernel.bulk_store and kernel.store_passes:
            self.phase_2b = clock.smem_load_latency * ROWS_A_WARP * rows * width

    def load(self, first: bool) -> float:
        """Load the next stage, and return when the MMA warp sees it."""
        gap = 0.0
        if first:
            gap = self.kernel.switch
            self.stage = 0 if self.kernel.ring_restarts else self.stage
        self.issued = max(self.issued + gap, self.stage_free[self.stage])
        nbytes = self.kernel.stage_nbytes
        self.filled = max(self.issued, self.filled)
        self.filled += nbytes / self.clock.tma_fill_bandwidth
        latency: float = self.clock.tma_hbm_latency + self.clock.mbarrier_wake
        return self.filled + latency

    def multiply(self) -> None:
        """Issue a stage's MMAs; the warp goes on when the first has begun."""
        kernel, clock = self.kernel, self.clock
        self.warp += kernel.to_first_mma
        self.warp = max(self.warp, self.mma_free)
        compute = MMAS_A_STAGE * kernel.tile_n * clock.mma_column
        port = kernel.stage_nbytes / clock.smem_bandwidth
        port *= 1 + self.fitted.port_shared
        self.mma_free = self.port.end_of(self.warp, compute, port)
        self.warp += kernel.to_last_mma
        self.stage_free[self.stage] = self.seen(self.mma_free)
        self.stage = (self.stage + 1) % kernel.stages

    def seen(self, issued: float) -> float:
        """When a warp sees that MMAs are done, of which the last left the pipe then."""
        clock = self.clock
        latency: float = clock.mma_fill + clock.mma_pair + clock.commit_latency
        wake: float = clock.mbarrier_wake
        return issued + latency + wake

    def wait(self, what: str, until: float, tile: int) -> None:
        """Let the MMA warp wait."""
        self.note("MMA warp", what, tile, (self.warp, max(self.warp, until)))
        self.sums[what] += max(0.0, until - self.warp)
        self.warp = max(self.warp, until)

    def note(self, who: str, what: str, tile: int, span: tuple[float, float]) -> None:
        """Keep what somebody did, if it took any time."""
        if span[1] > span[0]:
            self.spans.append(Span(who, what, tile, *span))

    def epilogue(self, done: float, tile: int) -> float:
        """Work off an accumulator, and return when it is given back."""
        release = 0.0
        c = self.fitted.unevenness
        each = self.fitted.port_shared / self.kernel.epilogue_warps
        for w, free in enumerate(self.warps):
            start = max(free, done)
            took = self.phase_1 * (1 - c + c * self.rng.expovariate(1.0))
            end = start + took
            self.warps[w] = end + self.phase_2b
            given = end if self.kernel.early_release else self.warps[w]
            release = max(release, given)
            self.sums["ml wait"] += (start - free) / len(self.warps)
            self.sums["phase 1"] += took / len(self.warps)
            if w < self.kernel.epilogue_warps:
                self.port.add(start, end, each * self.through_l1)
                self.port.add(end, self.warps[w], each * self.store)
            if w == 0:
                self.note("epilogue warp", "ml wait", tile, (free, start))
                self.note("epilogue warp", "phase 1", tile, (start, end))
                self.note("epilogue warp", "phase 2B", tile, (end, self.warps[w]))
        return release


class Span(NamedTuple):
    """What somebody did, in clocks from the start."""

    who: str
    what: str
    tile: int
    start: float
    end: float


@cache
def steady(kernel: Kernel, clock: Durations, fitted: Fitted) -> dict[str, float]:
    """Return the mean cycles of a tile, by the names of the document's table."""
    runs = [_work_off(_Pair(kernel, clock, fitted, seed)) for seed in range(RUNS)]
    return {name: sum(run[name] for run in runs) / RUNS for name in runs[0]}


def timeline(kernel: Kernel, clock: Durations, fitted: Fitted) -> tuple[Span, ...]:
    """Return what the MMA warp and the first epilogue warp of one pair do."""
    pair = _Pair(kernel, clock, fitted, seed=0)
    _work_off(pair)
    return tuple(pair.spans)


def _work_off(pair: _Pair) -> dict[str, float]:
    """Return the mean cycles of the tiles of one pair, the first few left out."""
    kernel = pair.kernel
    released = [0.0, 0.0]
    counted = kernel.tiles - WARM_TILES
    begun = 0.0
    for tile in range(kernel.tiles):
        if tile == WARM_TILES:
            pair.sums, begun = dict.fromkeys(pair.sums, 0.0), pair.warp
        free = released[tile % 2] + (pair.clock.mbarrier_wake if tile > 1 else 0.0)
        pair.wait("epi wait", free, tile)
        for k in range(kernel.k_iterations):
            seen = pair.load(first=k == 0)
            if k == 0:
                pair.wait("TMA0 wait", seen, tile)
                start = pair.warp
            pair.warp = max(pair.warp, seen)
            pair.multiply()
        pair.note("MMA warp", "K-loop", tile, (start, pair.warp))
        pair.sums["K-loop"] += pair.warp - start
        released[tile % 2] = pair.epilogue(pair.seen(pair.mma_free), tile)
    means = {name: total / counted for name, total in pair.sums.items()}
    means["phase 2B"] = pair.phase_2b
    return means | {"tile": (pair.warp - begun) / counted}
