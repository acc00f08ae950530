"""overview: where D differs: whole if that is cheap, else bands of rows and columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fp4ref.evidence.triage.case import TILE, Case
from fp4ref.evidence.triage.predict import output
from fp4ref.evidence.triage.reading import I64
from fp4ref.tensors.block_format import NVFP4_VEC_SIZE

MOST_PRODUCTS: Final = 1 << 31
"""Of elements: what an overview may multiply."""
_SAMPLE: Final = 128
_LEAST_BAND: Final = 32
Bool = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Band:
    """A right D at some rows and columns, and where the dump differs.

    Attributes
    ----------
    right, differs : (rows, columns)
    right_sfd, sfd_differs : (rows, blocks)
        None without scales of D.
    """

    rows: I64
    columns: I64
    right: NDArray[Any]
    differs: Bool
    right_sfd: NDArray[np.uint8] | None
    sfd_differs: Bool | None

    @property
    def blocks(self) -> I64:
        """Numbers of the blocks of columns that share a scale."""
        return np.unique(self.columns // NVFP4_VEC_SIZE)

    def sub(self, rows: I64, columns: I64) -> Band:
        """Return some rows and columns, by their places in the band."""
        at, sfd, sfd_differs = np.ix_(rows, columns), None, None
        if self.right_sfd is not None and self.sfd_differs is not None:
            found = np.unique(self.columns[columns] // NVFP4_VEC_SIZE)
            of_blocks = np.ix_(rows, np.searchsorted(self.blocks, found))
            sfd, sfd_differs = self.right_sfd[of_blocks], self.sfd_differs[of_blocks]
        return Band(
            *(self.rows[rows], self.columns[columns]),
            *(self.right[at], self.differs[at]),
            *(sfd, sfd_differs),
        )


def band(case: Case, rows: I64, columns: I64) -> Band:
    """Compute a right D at some rows and columns; of nvfp4 whole blocks of columns."""
    right = output(case, case.right, rows, columns)
    differs = right.d != case.d[np.ix_(rows, columns)]
    sfd_differs = None
    if right.sfd is not None and case.sfd is not None:
        blocks = np.unique(columns // NVFP4_VEC_SIZE)
        sfd_differs = right.sfd != case.sfd[np.ix_(rows, blocks)]
    return Band(rows, columns, right.d, differs, right.sfd, sfd_differs)


@dataclass(frozen=True, eq=False)
class Overview:
    """What was compared.

    Attributes
    ----------
    bands
        One that is the whole D, or one of rows and one of columns.
    """

    bands: tuple[Band, ...]
    whole: bool

    @property
    def seen(self) -> int:
        """Elements of D that were compared, those in two bands once."""
        first, *rest = self.bands
        twice = len(first.rows) * len(rest[0].columns) if rest else 0
        return sum(each.differs.size for each in self.bands) - twice

    @property
    def differing(self) -> int:
        """Elements of D that differ, those in two bands once."""
        first, *rest = self.bands
        count = sum(int(each.differs.sum()) for each in self.bands)
        if rest:
            count -= int(first.differs[:, rest[0].columns].sum())
        return count

    @property
    def sfd_differing(self) -> int:
        """Scales of D that differ, in the first band."""
        found = self.bands[0].sfd_differs
        return 0 if found is None else int(found.sum())

    def lines(self, axis: int) -> Bool:
        """Return which rows (axis 0) or columns (1) have a difference."""
        shape = (self.bands[-1].differs.shape[0], self.bands[0].differs.shape[1])
        found = np.zeros(shape[axis], bool)
        for each in self.bands:
            at = (each.rows, each.columns)[axis]
            found[at] |= each.differs.any(axis=1 - axis)
            if each.sfd_differs is not None:
                hit: Bool = np.any(each.sfd_differs, axis=1 - axis)
                if axis:
                    blocks = at // NVFP4_VEC_SIZE
                    hit = hit[np.searchsorted(each.blocks, blocks)]
                found[at] |= hit
        return found


def overview(case: Case) -> Overview:
    """Compare D with a right one."""
    every = np.arange(case.m), np.arange(case.n)
    if case.m * case.n * case.k <= MOST_PRODUCTS:
        return Overview((band(case, *every),), whole=True)
    half = MOST_PRODUCTS // 2
    rows = spread(case.m, max(_LEAST_BAND, half // (case.n * case.k)), 1)
    columns = spread(
        case.n, max(_LEAST_BAND, half // (case.m * case.k)), column_unit(case)
    )
    bands = band(case, rows, every[1]), band(case, every[0], columns)
    return Overview(bands, whole=False)


def column_unit(case: Case) -> int:
    """Return how many neighbouring columns are looked at together."""
    return NVFP4_VEC_SIZE if case.format == "nvfp4" else 4


def spread(end: int, count: int, unit: int) -> I64:
    """Return about `count` of ``range(end)``, in runs of `unit`, all residues mixed."""
    units = -(-end // unit)
    wanted = min(units, max(1, count // unit))
    rng = np.random.default_rng(0)
    edges = np.linspace(0, units, wanted + 1).astype(np.int64)
    chosen = rng.integers(edges[:-1], np.maximum(edges[1:], edges[:-1] + 1))
    found = (np.unique(chosen)[:, None] * unit + np.arange(unit)).ravel()
    return found[found < end]


def sample(case: Case, seen: Overview) -> Band:
    """Return rows and columns where D differs, and a few where it does not."""
    rows = _some(seen.lines(0), _SAMPLE, 1)
    columns = _some(seen.lines(1), _SAMPLE, column_unit(case))
    if seen.whole:
        return seen.bands[0].sub(rows, columns)
    return band(case, rows, columns)


def _some(differs: Bool, count: int, unit: int) -> I64:
    """Return the places of some lines, three of four with a difference."""
    of_units = np.pad(differs, (0, -len(differs) % unit)).reshape(-1, unit).any(axis=1)
    wanted = max(1, count // unit)
    hit, missed = np.flatnonzero(of_units), np.flatnonzero(~of_units)
    few = min(len(missed), max(wanted // 4, wanted - len(hit)))
    chosen = np.concatenate([_even(hit, wanted - few), _even(missed, few)])
    found = (np.sort(chosen)[:, None] * unit + np.arange(unit)).ravel()
    return found[found < len(differs)]


def _even(places: I64, count: int) -> I64:
    if len(places) <= count:
        return places
    chosen: I64 = places[spread(len(places), count, 1)]
    return chosen


def tile_numbers(rows: I64, columns: I64, n: int) -> I64:
    """Return the number of the tile of each element (rows, columns)."""
    across = -(-n // TILE)
    numbers: I64 = rows[:, None] // TILE * across + columns[None] // TILE
    return numbers
