"""slab_plan: which float32 slabs a product takes, and what they leave out.

A plan promises that a slab's norms are small enough for BLAS, point 2 of the proof in
`tiers`. Which of several is taken is a guess about time.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

import numpy as np

from fp4ref.numerics import slabs
from fp4ref.numerics.doubts import Masks
from fp4ref.numerics.factors import Bools, Factors
from fp4ref.numerics.formats import F64, I64
from fp4ref.numerics.one_step import FLOAT32_BITS, norms
from fp4ref.numerics.tier_report import TileReport

SHARE: Final = 0.97
"""Of 2^24 units, what one slab of several may take; the rest is for the sums."""

MOST: Final = 0.8
"""Share of rows and of columns for which a length of slabs is taken."""

_NEARLY_ALL: Final = 0.98
"""Share of rows for which a slab is made longer if it is more than twice as long."""

_CANCELLED: Final = 2.0**-36
"""Of a row's squares: more than sums lose that are subtracted from each other, for up
to 2^16 steps, and than the roots and products after them lose."""

_CORNER: Final = 1 / 16
"""Share of outputs that a plan may leave out in a corner."""

_PASS: Final = 1 / 60
"""Time of adding a slab to D, by that of a product of K = 2048."""

_REST: Final = 1 / 30
"""Time of a product of few rows or columns, by that of a whole one of K = 2048."""

_LEAST_SUBNORMAL: Final = -149


def span(at: I64) -> slice | I64:
    """Return a slice where the indices are a run of them."""
    run = len(at) > 0 and at[-1] - at[0] + 1 == len(at)
    return slice(int(at[0]), int(at[-1]) + 1) if run else at


@dataclass
class Slabs:
    """A plan of float32 slabs for some rows and columns of a tile.

    Attributes
    ----------
    steps
        Of the first slab.
    usual, columns
        For which it was made.
    corner
        Rows and columns of these whose common outputs it leaves out.
    squares
        Of A and of B, (rows, steps).
    rows
        Those of `usual` whose sums stayed small.
    """

    steps: int
    usual: Bools
    columns: Bools
    corner: tuple[Bools, Bools]
    squares: tuple[F64, F64]
    rows: Bools = field(init=False)

    def __post_init__(self) -> None:
        """Start with all."""
        self.rows = self.usual

    @cached_property
    def masks(self) -> Masks:
        """Which outputs matter."""
        if self.corner[0].any():
            return slabs.masks(*self.corner)
        return slabs.masks(np.ones_like(self.usual), ~self.columns)

    @cached_property
    def _running(self) -> tuple[F64, F64]:
        """Sums of the squares of A and of B before each step, (steps + 1, rows)."""
        return tuple(  # type: ignore[return-value]
            np.cumsum(np.vstack([np.zeros(len(of)), of.T]), axis=0)
            for of in self.squares
        )

    def norms(self, first: int, last: int) -> F64:
        """Return the largest norm of a slab among the outputs of each row."""
        a, b = (
            np.sqrt(of[last] - of[first] + of[-1] * _CANCELLED) for of in self._running
        )
        rows, columns = self.masks
        of_some = b[columns != 0].max(initial=0.0)
        bounds: F64 = a * np.where(rows != 0, b.max(), of_some)
        return bounds

    def next(self, first: int, before: F64, growth: float, limit: float) -> int:
        """Return after how many steps the slab from `first` on may end.

        Parameters
        ----------
        before
            The largest magnitude of each row.
        growth
            By how much of a slab's norm it may grow; a guess.
        limit
            For D before and after the slab, and its norm.

        Returns
        -------
        int
            `first` if there is no such slab.
        """
        steps = self.squares[0].shape[1]

        def fits(last: int, share: float) -> bool:
            room = limit - 2 * before - (1 + growth) * self.norms(first, last)
            fit = np.count_nonzero((room >= 0) & self.rows)
            return bool(fit >= share * np.count_nonzero(self.rows))

        def longest(share: float) -> int:
            lasts = range(first + 1, steps + 1)
            return bisect_left(lasts, True, key=lambda last: not fits(last, share))

        length = longest(1.0)
        if first + 2 * length < steps and fits(first + 2 * length + 1, _NEARLY_ALL):
            length = longest(_NEARLY_ALL)
        # As few slabs of like lengths are safer.
        left = steps - first
        return first + (-(-left // -(-left // length)) if length else 0)

    @property
    def time(self) -> float:
        """What it takes, by the time of the product alone."""
        shares = 1 - self.usual.mean(), 1 - self.columns.mean()
        rests = sum(share + _REST for share in shares if share)
        corner = self.corner[0].mean() * self.corner[1].mean()
        count = -(-self.squares[0].shape[1] // self.steps)
        return float(count * _PASS + rests + corner)


@dataclass
class Planner:
    """Plans slabs for some rows of A and of B.

    Attributes
    ----------
    fraction_bits
        Of the model.
    """

    a: Factors
    b: Factors
    fraction_bits: int
    _known: dict[int, tuple[F64, F64]] = field(default_factory=dict)

    def _norms(self, steps: int) -> tuple[F64, F64]:
        """Return the norms of slabs of so many steps."""
        if steps not in self._known:
            self._known[steps] = norms(self.a, steps), norms(self.b, steps)
        return self._known[steps]

    def plan(self, share: float, report: TileReport) -> Slabs | None:
        """Return the slabs that take the least time, with what they leave out."""
        a, b = self.a, self.b
        spread_a, spread_b = (f.top.max(axis=1) - f.base for f in (a, b))
        if spread_a.max() + spread_b.max() > self.fraction_bits:
            report.note("exponents too wide for terms without loss")
            return None
        least, most = a.base.min() + b.base.min(), a.base.max() + b.base.max()
        if least < _LEAST_SUBNORMAL or most + FLOAT32_BITS > 127:
            report.note("units beyond those of float32")
            return None
        best: Slabs | None = None
        for steps in self._lengths(share):
            count = -(-a.unit.shape[1] // steps)
            if best is not None and count * _PASS >= best.time:
                break
            for found in self._slabs(steps, share if count > 1 else 1.0):
                if best is None or found.time < best.time:
                    best = found
        if best is None:
            report.note(f"sums beyond 2^{FLOAT32_BITS} units in any slab")
        return best

    def _lengths(self, share: float) -> Iterator[int]:
        """Yield lengths of slabs in steps, the longest first; none is left out in vain.

        The largest of `count` slabs has at least the mean of the squares.
        """
        steps = self.a.unit.shape[1]
        of_a, of_b = (np.quantile(of[:, 0], MOST) for of in self._norms(steps))
        fewest = int(min(of_a * of_b / (share * 2.0**FLOAT32_BITS), steps))
        before = 0
        for count in (1, *range(max(fewest, 2), steps + 1)):
            length = -(-steps // count)
            if length != before:
                yield length
            before = length

    def _slabs(self, steps: int, share: float) -> Iterator[Slabs]:
        """Yield plans of a length that most outputs allow."""
        limit = share * 2.0**FLOAT32_BITS
        norms_a, norms_b = self._norms(steps)
        squares = self.a.square, self.b.square
        worst_a, worst_b = norms_a.max(axis=1), norms_b.max(axis=1)
        # The outputs beyond the limit are all in one corner.
        corner = worst_a * worst_b.max() > limit, worst_b * worst_a.max() > limit
        if corner[0].mean() * corner[1].mean() <= _CORNER:
            everything = np.ones_like(corner[0]), np.ones_like(corner[1])
            yield Slabs(steps, *everything, corner, squares)
            return
        most = len(worst_b) * 9 // 10
        usual = np.partition(worst_b, most)[most]
        good_a = worst_a * max(usual, 1.0) <= limit
        if np.count_nonzero(good_a) < MOST * len(good_a):
            return
        good_b = worst_b * worst_a[good_a].max() <= limit
        if np.count_nonzero(good_b) < MOST * len(good_b):
            return
        no_corner = np.zeros_like(good_a), np.zeros_like(good_b)
        yield Slabs(steps, good_a, good_b, no_corner, squares)
