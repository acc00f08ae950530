"""pattern: which rows, columns and tiles differ, in words."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fp4ref.evidence.triage.case import TILE, Case
from fp4ref.evidence.triage.overview import Band, Overview
from fp4ref.numerics.elements import element
from fp4ref.tensors.block_format import NVFP4_VEC_SIZE

_PERIODS: Final = (2, 4, 8, 16, 32, 64, 128, 256)
_SHOWN: Final = 6


@dataclass(frozen=True)
class First:
    """The first element, or scale, in which D is wrong.

    Attributes
    ----------
    part
        ``"d"`` or ``"sfd"``; the column of a scale is that of its block.
    expected, found
        Codes in hexadecimal, with their values.
    """

    part: str
    row: int
    column: int
    tile: tuple[int, int]
    expected: str
    found: str


@dataclass(frozen=True)
class Pattern:
    """Where D differs.

    Attributes
    ----------
    rows, columns, tiles
        In words; tiles are of 128 x 128, counted along M and N.
    """

    first: First
    rows: str
    columns: str
    tiles: str

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return asdict(self)


def pattern(case: Case, seen: Overview) -> Pattern | None:
    """Return the pattern; None where nothing differs."""
    first = _first(case, seen)
    if first is None:
        return None
    rows, columns = seen.lines(0), seen.lines(1)
    return Pattern(
        first, lines_in_words(rows), lines_in_words(columns), _tiles(case, seen)
    )


def _first(case: Case, seen: Overview) -> First | None:
    """Return what comes first along the rows of what was compared."""
    best: tuple[int, int] | None = None
    said: First | None = None
    for each in seen.bands:
        at = np.argwhere(each.differs)
        if not at.size:
            continue
        i, j = at[0]
        place = int(each.rows[i]), int(each.columns[j])
        if best is None or place < best:
            best, said = place, _shown(case, each, int(i), int(j), place)
    if said is not None or seen.bands[0].sfd_differs is None:
        return said
    each = seen.bands[0]
    for each in seen.bands:
        assert each.sfd_differs is not None
        assert each.right_sfd is not None
        assert case.sfd is not None
        at = np.argwhere(each.sfd_differs)
        if at.size:
            i, j = at[0]
            row, block = int(each.rows[i]), int(each.blocks[j])
            of = case.config.epilogue.sfd_format
            codes = each.right_sfd[i, j], case.sfd[row, block]
            values = [
                f"{c:#04x} = {float(of.decode(c.reshape(1))[0]):g}" for c in codes
            ]
            column = block * NVFP4_VEC_SIZE
            tile = row // TILE, column // TILE
            return First("sfd", row, column, tile, *values)
    return None


def _shown(case: Case, each: Band, i: int, j: int, place: tuple[int, int]) -> First:
    row, column = place
    name = "e2m1" if case.format == "nvfp4" else case.format
    of = element(name)
    codes = each.right[i, j], case.d[row, column]
    width = 2 + of.bits // 4
    values = [
        f"{int(c):#0{width}x} = {float(of.values(np.array([c]))[0]):.7g}" for c in codes
    ]
    return First("d", row, column, (row // TILE, column // TILE), *values)


def lines_in_words(differs: NDArray[np.bool_]) -> str:
    """Say which lines differ: all, a rule modulo a power of two, or ranges."""
    end, count = len(differs), int(differs.sum())
    if count == 0:
        return f"none of {end}"
    if count == end:
        return f"all {end}"
    for period in _PERIODS:
        if period * 2 > end:
            break
        rest = np.arange(end) % period
        hit = np.unique(rest[differs])
        if len(hit) < period and np.array_equal(np.isin(rest, hit), differs):
            chosen = np.zeros(period, bool)
            chosen[hit] = True
            return f"{count} of {end}: those with index % {period} in {_ranges(chosen)}"
    return f"{count} of {end}: {_ranges(differs)}"


def _ranges(chosen: NDArray[np.bool_]) -> str:
    edges = np.flatnonzero(np.diff(np.concatenate([[0], chosen.astype(np.int8), [0]])))
    runs = [
        str(a) if b - a == 1 else f"{a} to {b - 1}"
        for a, b in edges.reshape(-1, 2).tolist()
    ]
    more = f", and {len(runs) - _SHOWN} more" if len(runs) > _SHOWN else ""
    return ", ".join(runs[:_SHOWN]) + more


def tile_counts(case: Case, seen: Overview) -> NDArray[np.int64]:
    """Return how many elements that were compared differ in each tile."""
    down, across = -(-case.m // TILE), -(-case.n // TILE)
    counts = np.zeros((down, across), np.int64)
    for each in seen.bands:
        i, j = np.nonzero(each.differs)
        np.add.at(counts, (each.rows[i] // TILE, each.columns[j] // TILE), 1)
        if each.sfd_differs is not None:
            i, j = np.nonzero(each.sfd_differs)
            at = each.blocks[j] * NVFP4_VEC_SIZE // TILE
            np.add.at(counts, (each.rows[i] // TILE, at), 1)
    return counts


def _tiles(case: Case, seen: Overview) -> str:
    counts = tile_counts(case, seen)
    hit = np.argwhere(counts > 0)
    if len(hit) == counts.size:
        return f"all {counts.size}"
    named = ", ".join(f"({m},{n})" for m, n in hit[:_SHOWN].tolist())
    more = f", and {len(hit) - _SHOWN} more" if len(hit) > _SHOWN else ""
    return f"{len(hit)} of {counts.size}: {named}{more}"
