"""slab_plan: which float32 slabs a product takes, and what they leave out.

A plan promises that a slab's norms are small enough for BLAS, point 2 of the proof in
`tiers`. Which of several is taken is a guess about time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from fp4ref.numerics import slabs
from fp4ref.numerics.doubts import Running
from fp4ref.numerics.factors import Bools, Factors
from fp4ref.numerics.formats import F64, I64
from fp4ref.numerics.one_step import FLOAT32_BITS, norms
from fp4ref.numerics.tier_report import TileReport

SHARE: Final = 0.97
"""Of 2^24 units, what one slab of several may take; the rest is for the sums."""

MOST: Final = 0.8
"""Share of rows and of columns for which a length of slabs is taken."""

_CORNER: Final = 1 / 16
"""Share of outputs that a plan may leave out in a corner."""

_PASS: Final = 1 / 80
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
    usual, columns
        For which it was made.
    corner
        Rows and columns of these whose common outputs it leaves out.
    rows
        Those of `usual` whose sums stayed small.
    """

    steps: int
    usual: Bools
    columns: Bools
    corner: tuple[Bools, Bools]
    norms: tuple[F64, F64]
    rows: Bools = field(init=False)

    def __post_init__(self) -> None:
        """Start with all."""
        self.rows = self.usual

    @property
    def count(self) -> int:
        """How many slabs."""
        return int(self.norms[0].shape[1])

    def running(self, s: int) -> Running:
        """Return the bounds of a slab."""
        a, b = (each[:, s] for each in self.norms)
        if self.corner[0].any():
            return slabs.running(a, b, *self.corner)
        return slabs.running(a, b, np.ones_like(self.usual), ~self.columns)

    @property
    def time(self) -> float:
        """What it takes, by the time of the product alone."""
        shares = 1 - self.usual.mean(), 1 - self.columns.mean()
        rests = sum(share + _REST for share in shares if share)
        corner = self.corner[0].mean() * self.corner[1].mean()
        return float(self.count * _PASS + rests + corner)


@dataclass
class Planner:
    """Plans slabs for parts of one product.

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
        """Return the norms of slabs of so many steps, of all rows and columns."""
        if steps not in self._known:
            self._known[steps] = norms(self.a, steps), norms(self.b, steps)
        return self._known[steps]

    def plan(
        self,
        rows: I64,
        columns: I64,
        a: Factors,
        b: Factors,
        share: float,
        report: TileReport,
    ) -> Slabs | None:
        """Return the slabs that take the least time, with what they leave out."""
        spread_a, spread_b = (f.top.max(axis=1) - f.base for f in (a, b))
        if spread_a.max() + spread_b.max() > self.fraction_bits:
            report.note("exponents too wide for terms without loss")
            return None
        least, most = a.base.min() + b.base.min(), a.base.max() + b.base.max()
        if least < _LEAST_SUBNORMAL or most + FLOAT32_BITS > 127:
            report.note("units beyond those of float32")
            return None
        best: Slabs | None = None
        for steps in self._lengths(rows, columns, share):
            count = -(-a.unit.shape[1] // steps)
            if best is not None and count * _PASS >= best.time:
                break
            for found in self._slabs(rows, columns, steps, share if count > 1 else 1.0):
                if best is None or found.time < best.time:
                    best = found
        if best is None:
            report.note(f"sums beyond 2^{FLOAT32_BITS} units in any slab")
        return best

    def _lengths(self, rows: I64, columns: I64, share: float) -> Iterator[int]:
        """Yield lengths of slabs in steps, the longest first; none is left out in vain.

        The largest of `count` slabs has at least the mean of the squares.
        """
        steps = self.a.unit.shape[1]
        of_a, of_b = (
            np.quantile(of[at, 0], MOST)
            for of, at in zip(self._norms(steps), (rows, columns), strict=True)
        )
        fewest = int(min(of_a * of_b / (share * 2.0**FLOAT32_BITS), steps))
        before = 0
        for count in (1, *range(max(fewest, 2), steps + 1)):
            length = -(-steps // count)
            if length != before:
                yield length
            before = length

    def _slabs(
        self, rows: I64, columns: I64, steps: int, share: float
    ) -> Iterator[Slabs]:
        """Yield plans of a length that most outputs allow."""
        limit = share * 2.0**FLOAT32_BITS
        of_a, of_b = self._norms(steps)
        norms_a, norms_b = of_a[span(rows)], of_b[span(columns)]
        worst_a, worst_b = norms_a.max(axis=1), norms_b.max(axis=1)
        # The outputs beyond the limit are all in one corner.
        corner = worst_a * worst_b.max() > limit, worst_b * worst_a.max() > limit
        if corner[0].mean() * corner[1].mean() <= _CORNER:
            everything = np.ones_like(corner[0]), np.ones_like(corner[1])
            yield Slabs(steps, *everything, corner, (norms_a, norms_b))
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
        yield Slabs(steps, good_a, good_b, no_corner, (norms_a, norms_b))
