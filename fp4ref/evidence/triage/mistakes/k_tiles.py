"""k_tiles: the wrong k-tile, none, or what is left in a stage."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

import numpy as np

from fp4ref.evidence.triage.case import Case
from fp4ref.evidence.triage.mistake import Change, Mistake
from fp4ref.evidence.triage.reading import I64, Map, Reading

_MOST_STAGES: Final = 7
_MOST_LEFT_OUT: Final = 64
Tiles = Callable[[I64], I64]
_LOADS: Final = {
    "A": "a",
    "B": "b",
    "A and B": "ab",
    "SFA": "A",
    "SFB": "B",
    "SFA and SFB": "AB",
    "A and SFA": "aA",
    "B and SFB": "bB",
    "A, B and scales": "abAB",
}
"""Copies of a stage, as letters: small for codes, capital for scales."""
_NOTHING: Final = "aA"
"""No MMA: zeros with scales would still align the accumulator to the scales."""


def _moved(case: Case, tiles: Tiles, letters: str) -> Change:
    """Return the change that some copies bring other k-tiles; -1 brings zeros."""

    def mapped(per_tile: int, end: int) -> Map:
        def found(row: I64, at: I64) -> tuple[I64, I64]:
            tile = tiles(at // per_tile)
            moved = tile * per_tile + at % per_tile
            return np.where((tile < 0) | (moved >= end), -1, row), moved

        return found

    codes = mapped(case.k_tile, case.k)
    vec = case.a.vec_size
    scales = mapped(case.k_tile // vec, case.k // vec)

    def change(reading: Reading) -> Reading:
        a, b = reading.a, reading.b
        a = a.with_codes(codes) if "a" in letters else a
        b = b.with_codes(codes) if "b" in letters else b
        a = a.with_scales(scales) if "A" in letters else a
        b = b.with_scales(scales) if "B" in letters else b
        return replace(reading, a=a, b=b)

    return change


def _wrong(case: Case) -> Iterator[tuple[str, Change]]:
    count = case.k_tiles
    if count > 1:
        moves: tuple[tuple[str, Tiles], ...] = (
            ("the next", lambda t: np.where(t + 1 < count, t + 1, -1)),
            ("the next, and the first at last", lambda t: (t + 1) % count),
            ("the one before", lambda t: t - 1),
            ("always the first", lambda t: t * 0),
        )
        for words, tiles in moves:
            for side, letters in _LOADS.items():
                if len(letters) < 3:
                    yield f"{side}: {words}", _moved(case, tiles, letters)
        for left in range(min(count, _MOST_LEFT_OUT)):
            yield (
                f"k-tile {left} left out",
                _moved(case, _without(left), _NOTHING),
            )
        yield (
            "only the last",
            _moved(case, lambda t: np.where(t == count - 1, t, -1), _NOTHING),
        )
        if count > 2:
            yield (
                "only the first",
                _moved(case, lambda t: np.where(t == 0, t, -1), _NOTHING),
            )


def _without(left: int) -> Tiles:
    return lambda t: np.where(t == left, -1, t)


def _ways(stages: int, count: int) -> dict[str, Tiles]:
    """Return which k-tile stands for which, in words."""
    of = f"{stages} stages"
    return {
        f"{of}, overwritten too early": lambda t: np.where(
            t + stages < count, t + stages, t
        ),
        f"{of}, read too early": lambda t: np.where(t >= stages, t - stages, t),
        f"{of}, overwritten once": lambda t: np.where(t == 0, stages, t),
        f"{of}, read too early once": lambda t: np.where(t == stages, 0, t),
    }


def _reused(case: Case) -> Iterator[tuple[str, Change]]:
    """A stage is a k-tile modulo the stages: it holds the one `stages` away."""
    count = case.k_tiles
    for stages in range(2, min(_MOST_STAGES, count - 1) + 1):
        ways = _ways(stages, count)
        for words, tiles in ways.items():
            for side, letters in _LOADS.items():
                yield f"{side}: {words}", _moved(case, tiles, letters)


def _tail(case: Case) -> Iterator[tuple[str, Change]]:
    whole = case.k // case.k_tile
    if case.k % case.k_tile and whole:
        yield (
            "tail of K left out",
            _moved(case, lambda t: np.where(t < whole, t, -1), _NOTHING),
        )


K_TILES = (
    Mistake(
        "ragged K",
        "The last, partial k-tile is not multiplied.",
        "The number of k-tiles was rounded down.",
        "ceil_div(K, tile_k) on the host and in the loop of the mainloop",
        _tail,
    ),
    Mistake(
        "stage reused",
        "A stage of the ring holds another k-tile than the one that is multiplied.",
        "A wait is missing or its parity is wrong: the producer overwrote a stage "
        "that the MMA still needs, or the MMA read before the copy had landed.",
        "mbarrier.try_wait on the empty and the full barrier, the phase's flip when "
        "the ring wraps, and tcgen05.commit, which frees the stage [CUTLASS: "
        "PipelineTmaUmmaAsync]; fp4ref certify proves it for a trace",
        _reused,
    ),
    Mistake(
        "wrong k-tile",
        "Operands or scales of another k-tile are multiplied, or one is left out.",
        "A coordinate along K is off by one or does not advance; the loop starts or "
        "ends one k-tile off; enable-input-d is wrong at the first MMA of a k-tile.",
        "the coordinates of the tensor copies along K (scales count in atoms of 64 "
        "elements), the loop's bounds, enable-input-d of tcgen05.mma",
        _wrong,
    ),
)
