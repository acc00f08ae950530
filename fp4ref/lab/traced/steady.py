"""steady: the cycles of a tile that the document gives, from many tiles of the trace.

TMA0 wait, K-loop, epi wait are the MMA warp's; ml wait, phase 1 and phase 2B the mean
of all epilogue warps. Phase 1 ends with a warp's last store to shared memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from fp4ref.hardware.timing import Durations
from fp4ref.lab.traced.changes import epilogue_warps, mma_warp
from fp4ref.lab.traced.events import Times, factors, run, table
from fp4ref.lab.traced.events_jit import F64
from fp4ref.lab.traced.tile import Step

RUNS: Final = 2
"""Runs, each with other tiles that take longer."""
TILES: Final = 100
WARM_TILES: Final = 8
"""Tiles at the start that are left out: the queues are still filling."""
LAST_TILES: Final = 4
"""Tiles at the end that are left out: nothing comes after them."""
_STAGED: Final = ("st.shared", "tcgen05.wait::ld", "tcgen05.ld")


@dataclass(frozen=True, slots=True)
class Options:
    """What the clock has no figure for.

    Attributes
    ----------
    unevenness
        Standard deviation of a warp's phase 1 over its mean.
    saved
        Clocks that an element of the accumulator takes less.
    to_first_mma, to_last_mma
        Instructions of the MMA warp from a stage's barrier to its first MMA, and on to
        its commit.
    copy_clocks, first_half_clocks
        That a warp takes more to issue a copy of its staged rows: behind phase 1, and
        in it.
    memory_share
        Of a load's bytes from memory, those that no other pair brings at that time.
    """

    unevenness: float = 0.0
    saved: float = 0.0
    to_first_mma: float | None = None
    to_last_mma: float | None = None
    copy_clocks: float = 0.0
    first_half_clocks: float = 0.0
    memory_share: float = 1.0


class Span(NamedTuple):
    """What somebody did, in clocks from the start."""

    who: str
    what: str
    tile: int
    start: float
    end: float


class _Places(NamedTuple):
    """Where in a tile the document's phases begin and end."""

    mma: list[int]
    accumulator: int
    stage: int
    warps: list[list[int]]
    staged: list[int]


def _places(steps: Sequence[Step]) -> _Places:
    mma, warps = mma_warp(steps), epilogue_warps(steps)
    waits = [place for place in mma if _has(steps[place], "mbarrier.try_wait.parity")]
    staged = [
        [place for place in warp if any(_has(steps[place], name) for name in _STAGED)]
        for warp in warps
    ]
    return _Places(mma, waits[0], waits[1], warps, [each[-1] for each in staged])


def _has(step: Step, operation: str) -> bool:
    return any(part.operation == operation for part in step.parts)


def steady(
    steps: Sequence[Step], clock: Durations, options: Options
) -> dict[str, float]:
    """Return the mean cycles of a tile, by the names of the document's table."""
    at = _places(steps)
    found = [
        _counts(at, _times(steps, at, clock, options, seed)) for seed in range(RUNS)
    ]
    return {name: sum(each[name] for each in found) / RUNS for name in found[0]}


def timeline(
    steps: Sequence[Step], clock: Durations, options: Options
) -> tuple[Span, ...]:
    """Return what the MMA warp and one epilogue warp do, where it takes time."""
    at = _places(steps)
    times = _times(steps, at, clock, options, 0)
    came, went, ended = times.came, times.went, times.ended
    first, staged, last = at.warps[0][0], at.staged[0], at.warps[0][-1]
    rows = (
        ("MMA warp", "epi wait", came, at.accumulator, went, at.accumulator),
        ("MMA warp", "TMA0 wait", came, at.stage, went, at.stage),
        ("MMA warp", "K-loop", went, at.stage, ended, at.mma[-1]),
        ("epilogue warp", "ml wait", came, first, went, first),
        ("epilogue warp", "phase 1", went, first, ended, staged),
        ("epilogue warp", "phase 2B", ended, staged, ended, last),
    )
    return tuple(
        Span(who, what, tile, float(begins[tile, one]), float(ends[tile, other]))
        for tile in range(TILES - LAST_TILES)
        for who, what, begins, one, ends, other in rows
        if ends[tile, other] > begins[tile, one]
    )


def _times(
    steps: Sequence[Step], at: _Places, clock: Durations, options: Options, seed: int
) -> Times:
    mma, others = frozenset(at.mma), options.to_last_mma
    early = [
        [place for place in warp if place <= last]
        for warp, last in zip(at.warps, at.staged, strict=True)
    ]
    first_half = {place for places in early for place in places}

    def took(place: int, step: Step, clocks: float) -> float:
        if place in mma and others is not None and _issues(step):
            waits = _has(step, "mbarrier.try_wait.parity")
            return _known(options.to_first_mma) if waits else others / _REST
        registers = sum(part.registers * part.times for part in step.parts)
        copies = sum(part.times for part in step.parts if _is_store(part.operation))
        halves = options.copy_clocks, options.first_half_clocks
        clocks += copies * halves[place in first_half]
        return clocks - options.saved * registers

    drawn = factors(early, (TILES, len(steps)), options.unevenness, seed)
    return run(table(steps, clock, took, options.memory_share), drawn)


_REST: Final = 4
"""Steps of a k-tile behind its first MMA: three MMAs and the commit."""


def _issues(step: Step) -> bool:
    return _has(step, "tcgen05.mma") or _has(step, "tcgen05.commit")


def _is_store(operation: str) -> bool:
    return operation.startswith("cp.async.bulk") and operation.endswith("store")


def _known(value: float | None) -> float:
    assert value is not None
    return value


def _counts(at: _Places, times: Times) -> dict[str, float]:
    came, went, ended = (
        each[WARM_TILES : TILES - LAST_TILES]
        for each in (times.came, times.went, times.ended)
    )
    first, last = [warp[0] for warp in at.warps], [warp[-1] for warp in at.warps]

    def mean(of: F64) -> float:
        return float(of.mean())

    end = ended[:, at.mma[-1]]
    return {
        "TMA0 wait": mean(went[:, at.stage] - came[:, at.stage]),
        "K-loop": mean(end - went[:, at.stage]),
        "epi wait": mean(went[:, at.accumulator] - came[:, at.accumulator]),
        "ml wait": mean(went[:, first] - came[:, first]),
        "phase 1": mean(ended[:, at.staged] - went[:, first]),
        "phase 2B": mean(ended[:, last] - ended[:, at.staged]),
        "tile": float(end[-1] - end[0]) / (len(end) - 1),
    }
