"""tiers: a product by BLAS where a bound proves the bits, by integers elsewhere.

The integer model (`dot`, `dot_unscaled`) defines the bits: each instruction aligns its
terms and C to the largest exponent e_max among them, truncates each to F bits below it,
adds, and rounds toward zero to float32. Three tiers give these bits, the first that a
proof allows:

*float32 slabs*. Let u be a power of two that divides every product of a tile. Then

1. every sum of products is a multiple of u, and float32 holds it if its magnitude is at
   most 2^24 u;
2. by Cauchy and Schwarz the magnitudes of the products of a slab sum up to at most
   ``|a| |b|``. If that is at most 2^24 u, every partial sum that BLAS can form, in any
   order, with or without FMA, is exact;
3. D inside a slab is D before it plus some of the products, and D after it less the
   others. Both parts together are at most ``|a| |b|``, again by Cauchy and Schwarz. So
   twice |D| inside is at most ``|D before| + |D after| + |a| |b|``. BLAS adds the slab
   to D in any pieces. Were a sum beyond 2^24 u rounded there, each of the at most K
   additions after it would move D by no more than 2 u. If the three are at most
   ``2^25 u - 2 K u``, K being that of the slab, no sum was rounded, and D is exact
   after each instruction inside the slab too, so rounding toward zero changes nothing.
   Of D before and after, the largest of each row are taken. Rows where this fails are
   computed again, by shorter slabs;
4. no term loses bits where the largest exponent is at most ``log2 u + F``. C cannot
   raise it beyond: its exponent is at most ``log2 u + 24``, and F is 25 or 35.

Then D of the model is the exact sum, and so is that of BLAS. u is the product of the
units of a row and of a column, which are divided out beforehand.

*float64 slabs* of one instruction. A dot product is exact in float64 if ``|a| |b|`` of
the step is at most 2^53 of its unit (and in float32 at 2^24). C plus it, with the low
29 bits cleared, is what the model gives if no term loses bits. Where terms may lose
some, all of them together change the sum by less than ``margin`` of the last kept bit,
2^(e_max - F), with the rounding of C plus the dot product included; this changes
nothing unless the sum is that near to a float32 number. Such an output is computed by
the integer model, and so is one that is subnormal, infinite or NaN.

*integer model*. Whatever is left: rows with an Inf, rows of more than 60 binades, steps
that do not fit float64, and for F = 25 steps that lose bits, as nearly all sums are
near then.

A NaN in a row is one in all its outputs, so such rows need no sum.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from fp4ref.numerics import blas_threads
from fp4ref.numerics.factors import Factors
from fp4ref.numerics.float32_slabs import Float32Slabs
from fp4ref.numerics.formats import F32, I64, NAN_BITS
from fp4ref.numerics.integer_models import IntegerModel
from fp4ref.numerics.one_step import FLOAT32_BITS, add_step, is_lossless
from fp4ref.numerics.slab_plan import SHARE, Planner, Slabs, span
from fp4ref.numerics.tier_report import Tier, TierReport, TileReport

TILE_M: Final = 2048
TILE_N: Final = 2048


def multiply(model: IntegerModel, out: F32 | None = None) -> tuple[F32, TierReport]:
    """Return ``A B^T`` of a model, and how each tile of it was computed.

    Parameters
    ----------
    out : (M, N), optional
        Gets D. C-contiguous.

    Returns
    -------
    (M, N)
        The bits of the model.
    TierReport
        Tiles of `TILE_M` by `TILE_N`.
    """
    a, b = model.factors()
    d = np.empty((len(a.base), len(b.base)), np.float32) if out is None else out
    product = _Product(model, a, b, d)
    report = TierReport()
    for i in range(0, d.shape[0], TILE_M):
        for j in range(0, d.shape[1], TILE_N):
            rows, columns = (
                range(first, min(first + size, whole))
                for first, size, whole in zip(
                    (i, j), (TILE_M, TILE_N), d.shape, strict=True
                )
            )
            tile = TileReport(rows, columns)
            with blas_threads.one_thread():
                product.tile(np.array(rows), np.array(columns), tile)
            report.tiles.append(tile)
    nan = np.array(NAN_BITS, np.uint32).view(np.float32)
    d[a.nan] = nan
    d[:, b.nan] = nan
    return d, report


def _runs(rows: I64, columns: I64) -> bool:
    """Whether both are runs of indices."""
    return isinstance(span(rows), slice) and isinstance(span(columns), slice)


@dataclass
class _Product:
    """A product at work."""

    model: IntegerModel
    a: Factors
    b: Factors
    d: F32

    def tile(self, rows: I64, columns: I64, report: TileReport) -> None:
        """Compute D of some rows and columns."""
        apart_a, apart_b = self.a.apart[rows], self.b.apart[columns]
        if apart_a.any() or apart_b.any():
            report.note("rows with an Inf, or wider than float32")
            near_a, near_b = rows[~apart_a], columns[~apart_b]
            self._integers(rows[apart_a], columns, report)
            self._integers(near_a, columns[apart_b], report)
            rows, columns = near_a, near_b
        if len(rows) and len(columns):
            self._proved(rows, columns, report)

    def _integers(self, rows: I64, columns: I64, report: TileReport) -> None:
        """Compute D of some rows and columns by the integer model."""
        if len(rows) and len(columns):
            steps = slice(0, self.a.unit.shape[1])
            c = np.zeros((len(rows), len(columns)), np.float32)
            if self._groups(rows, columns, 0, c, report):
                return
            self._store(rows, columns, self.model.tile(rows, columns, steps, c))
            self._count(report, Tier.INTEGER, c.size * steps.stop)

    def _groups(
        self, rows: I64, columns: I64, first: int, c: F32, report: TileReport
    ) -> bool:
        """Take the steps from `first` on by sums of groups, if the model has them."""
        steps = self.a.unit.shape[1]
        found = self.model.add_groups(rows, columns, slice(first, steps), c)
        if found is None:
            return False
        report.note("sums of groups, times their scales in float64, and RZ")
        self._count(report, Tier.INTEGER, found)
        self._count(report, Tier.FLOAT64, c.size * (steps - first) - found)
        self._store(rows, columns, c)
        return True

    def _store(self, rows: I64, columns: I64, values: F32) -> None:
        if np.shares_memory(values, self.d):
            return
        if _runs(rows, columns):
            self.d[span(rows), span(columns)] = values
        else:
            self.d[np.ix_(rows, columns)] = values

    def _count(self, report: TileReport, tier: Tier, output_steps: int) -> None:
        report.macs[tier] += output_steps * self.model.step

    def _proved(
        self, rows: I64, columns: I64, report: TileReport, share: float = SHARE
    ) -> None:
        """Take float32 slabs where the bounds hold, and float64 for the rest.

        Parameters
        ----------
        share
            Of 2^24 units, for one slab of several.
        """
        whole = slice(None)
        a = self.a.rows(span(rows), whole)
        b = self.b.rows(span(columns), whole)
        plan = Planner(a, b, self.model.fraction_bits).plan(share, report)
        if plan is None:
            self._by_steps(rows, columns, 0, None, report)
            return
        there = _runs(rows, columns)  # what a plan leaves out is written over
        shape = len(rows), len(columns)
        at = span(rows), span(columns)
        sums = self.d[at] if there else np.empty(shape, np.float32)
        done = Float32Slabs(a, b, plan, self.model.step, sums).add_all()
        good_rows, good_columns = rows[plan.rows], columns[plan.columns]
        outputs = len(good_rows) * len(good_columns)
        corner = (plan.corner[0] & plan.rows).sum() * plan.corner[1].sum()
        self._count(report, Tier.FLOAT32, (outputs - int(corner)) * done)
        good = sums
        if outputs < sums.size and not (there and done == a.unit.shape[1]):
            good = sums[np.ix_(plan.rows, plan.columns)]
        if done == a.unit.shape[1]:
            length = plan.steps * self.model.step
            report.note(f"sums of at most 2^{FLOAT32_BITS} units in slabs of {length}")
            if not there:
                self._store(good_rows, good_columns, good)
        else:
            report.note(f"sums beyond 2^{FLOAT32_BITS} units after {done} steps")
            self._by_steps(good_rows, good_columns, done, good, report)
        for rest in self._rests(rows, columns, plan):
            report.note("some rows or columns of finer units")
            self._proved(*rest, report, share)
        if len(dropped := rows[~plan.rows & plan.usual]):
            report.note("some rows of larger sums")
            self._proved(dropped, good_columns, report, share / 2)

    @staticmethod
    def _rests(rows: I64, columns: I64, plan: Slabs) -> Iterator[tuple[I64, I64]]:
        """Yield what a plan leaves out, as rectangles."""
        if not plan.usual.all():
            yield rows[~plan.usual], columns
        if not plan.columns.all():
            yield rows[plan.usual], columns[~plan.columns]
        if plan.corner[0].any() and plan.corner[1].any():
            yield rows[plan.corner[0]], columns[plan.corner[1]]

    def _by_steps(
        self, rows: I64, columns: I64, first: int, c: F32 | None, report: TileReport
    ) -> None:
        """Take one step at a time from `first` on, by float64 or integers."""
        if c is None:
            c = np.zeros((len(rows), len(columns)), np.float32)
        if self._groups(rows, columns, first, np.ascontiguousarray(c), report):
            return
        steps = self.a.unit.shape[1]
        a = self.a.rows(span(rows), slice(None))
        b = self.b.rows(span(columns), slice(None))
        lossless = is_lossless(a, b, self.model.fraction_bits)
        if not lossless and self.model.fraction_bits < 35:
            c = self.model.tile(rows, columns, slice(first, steps), c)
            self._count(report, Tier.INTEGER, c.size * (steps - first))
            report.note("terms lose bits, and most sums are near a float32 number")
            self._store(rows, columns, c)
            return
        integers = 0
        for step in range(first, steps):
            at = slice(step, step + 1)
            k = slice(step * self.model.step, (step + 1) * self.model.step)
            part_a, part_b = (
                Factors(
                    of.values[:, k],
                    of.base,
                    of.unit[:, at],
                    of.top[:, at],
                    of.square[:, at],
                    of.nan,
                    of.apart,
                )
                for of in (a, b)
            )
            integers += add_step(
                self.model, part_a, part_b, (rows, columns), step, c, lossless
            )
        report.note(
            "RZ after each step of float64"
            + ("" if lossless else ", where no truncation can show")
        )
        self._count(report, Tier.INTEGER, integers)
        self._count(report, Tier.FLOAT64, c.size * (steps - first) - integers)
        self._store(rows, columns, c)
