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
3. if before each slab ``max |D| + |a| |b|`` is at most 2^24 u, D is exact after each
   instruction inside the slab too, so rounding toward zero changes nothing;
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
from functools import cached_property
from typing import Final

import numpy as np

from fp4ref.numerics import slabs
from fp4ref.numerics.factors import Bools, Factors
from fp4ref.numerics.formats import F32, F64, I64, NAN_BITS
from fp4ref.numerics.integer_models import IntegerModel
from fp4ref.numerics.one_step import FLOAT32_BITS, add_step, is_lossless, norms
from fp4ref.numerics.tier_report import Tier, TierReport, TileReport

TILE_M: Final = 2048
TILE_N: Final = 2048

_SLABS: Final = (1024, 512, 256, 128, 64)
"""K of float32 slabs, the longest first."""

_SHARE: Final = 0.625
"""Of 2^24 units, what one slab of several may take; the rest is for the sums."""

_MOST: Final = 0.8
"""Share of rows and of columns for which a length of slabs is taken."""

_LEAST_SUBNORMAL: Final = -149


def multiply(model: IntegerModel) -> tuple[F32, TierReport]:
    """Return ``A B^T`` of a model, and how each tile of it was computed.

    Returns
    -------
    (M, N)
        The bits of the model.
    TierReport
        Tiles of `TILE_M` by `TILE_N`.
    """
    a, b = model.factors()
    d = np.zeros((len(a.base), len(b.base)), np.float32)
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
            product.tile(np.array(rows), np.array(columns), tile)
            report.tiles.append(tile)
    nan = np.array(NAN_BITS, np.uint32).view(np.float32)
    d[a.nan] = nan
    d[:, b.nan] = nan
    return d, report


def _span(at: I64) -> slice | I64:
    """Return a slice where the indices are a run of them."""
    run = len(at) > 0 and at[-1] - at[0] + 1 == len(at)
    return slice(int(at[0]), int(at[-1]) + 1) if run else at


def _runs(rows: I64, columns: I64) -> bool:
    """Whether both are runs of indices."""
    return isinstance(_span(rows), slice) and isinstance(_span(columns), slice)


@dataclass
class _Slabs:
    """A plan of float32 slabs for some rows and columns of a tile."""

    steps: int
    rows: Bools
    columns: Bools
    bounds: list[float]


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
            c = self._zeros(rows, columns)
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

    def _zeros(self, rows: I64, columns: I64) -> F32:
        """Return zeros for some rows and columns: those of D, if they lie together."""
        if len(columns) == self.d.shape[1] and _runs(rows, columns):
            part = self.d[_span(rows)]
            part[:] = 0  # sums of a plan that left these rows out may be there
            return part
        return np.zeros((len(rows), len(columns)), np.float32)

    def _store(self, rows: I64, columns: I64, values: F32) -> None:
        if np.shares_memory(values, self.d):
            return
        if _runs(rows, columns):
            self.d[_span(rows), _span(columns)] = values
        else:
            self.d[np.ix_(rows, columns)] = values

    def _count(self, report: TileReport, tier: Tier, output_steps: int) -> None:
        report.macs[tier] += output_steps * self.model.step

    def _proved(self, rows: I64, columns: I64, report: TileReport) -> None:
        """Take float32 slabs where the bounds hold, and float64 for the rest."""
        whole = slice(None)
        a = self.a.rows(_span(rows), whole)
        b = self.b.rows(_span(columns), whole)
        plan = self._plan(rows, columns, a, b, report)
        if plan is None:
            self._by_steps(rows, columns, 0, None, report)
            return
        good_rows, good_columns = rows[plan.rows], columns[plan.columns]
        sums, last, done = self._float32(a, b, plan)
        outputs = len(good_rows) * len(good_columns)
        self._count(report, Tier.FLOAT32, outputs * done)
        units = np.exp2(a.base), np.exp2(b.base)
        if done == a.unit.shape[1]:
            length = plan.steps * self.model.step
            report.note(f"sums of at most 2^{FLOAT32_BITS} units in slabs of {length}")
            at = self.d[_span(rows), _span(columns)] if _runs(rows, columns) else sums
            slabs.scale_sums(sums, last, *units, at)  # the rests are written over
            if at is sums:
                chosen = sums[np.ix_(plan.rows, plan.columns)]
                self._store(good_rows, good_columns, chosen)
        else:
            report.note(f"sums beyond 2^{FLOAT32_BITS} units after {done} steps")
            slabs.scale_sums(sums, last, *units, sums)
            c = sums if outputs == sums.size else sums[np.ix_(plan.rows, plan.columns)]
            self._by_steps(good_rows, good_columns, done, c, report)
        for rest in self._rests(rows, columns, plan):
            report.note("some rows or columns of finer units")
            self._proved(*rest, report)

    @staticmethod
    def _rests(rows: I64, columns: I64, plan: _Slabs) -> Iterator[tuple[I64, I64]]:
        """Yield what a plan leaves out, as rectangles."""
        if not plan.rows.all():
            yield rows[~plan.rows], columns
        if not plan.columns.all():
            yield rows[plan.rows], columns[~plan.columns]

    @cached_property
    def _norms_of_slabs(self) -> list[tuple[int, F64, F64]]:
        """Lengths of slabs in steps, the longest first, and the norms of theirs."""
        steps = self.a.unit.shape[1]
        shorter = (max(k // self.model.step, 1) for k in _SLABS)
        lengths = (steps, *(each for each in shorter if each < steps))
        return [(n, norms(self.a, n), norms(self.b, n)) for n in lengths]

    def _plan(
        self, rows: I64, columns: I64, a: Factors, b: Factors, report: TileReport
    ) -> _Slabs | None:
        """Return the longest slabs that most rows and columns allow."""
        at_a, at_b = _span(rows), _span(columns)
        spread_a, spread_b = (f.top.max(axis=1) - f.base for f in (a, b))
        if spread_a.max() + spread_b.max() > self.model.fraction_bits:
            report.note("exponents too wide for terms without loss")
            return None
        least, most = a.base.min() + b.base.min(), a.base.max() + b.base.max()
        if least < _LEAST_SUBNORMAL or most + FLOAT32_BITS > 127:
            report.note("units beyond those of float32")
            return None
        steps = a.unit.shape[1]
        for length, of_a, of_b in self._norms_of_slabs:
            share = 1.0 if length == steps else _SHARE
            limit = share * 2.0**FLOAT32_BITS
            norms_a, norms_b = of_a[at_a], of_b[at_b]
            worst_a, worst_b = norms_a.max(axis=1), norms_b.max(axis=1)
            most = len(worst_b) * 9 // 10
            usual = np.partition(worst_b, most)[most]
            good_a = worst_a * max(usual, 1.0) <= limit
            if np.count_nonzero(good_a) < _MOST * len(good_a):
                continue
            good_b = worst_b * worst_a[good_a].max() <= limit
            if np.count_nonzero(good_b) < _MOST * len(good_b):
                continue
            bounds = norms_a[good_a].max(axis=0) * norms_b[good_b].max(axis=0)
            return _Slabs(length, good_a, good_b, bounds.tolist())
        report.note(f"sums beyond 2^{FLOAT32_BITS} units in any slab")
        return None

    @cached_property
    def _room(self) -> F32:
        """Room for the sums and one slab of a tile."""
        m, n = self.d.shape
        return np.empty((2, min(m, TILE_M) * min(n, TILE_N)), np.float32)

    def _float32(
        self, a: Factors, b: Factors, plan: _Slabs
    ) -> tuple[F32, F32 | None, int]:
        """Add slabs as long as the bounds hold.

        Returns
        -------
        array, array or None
            Their sum is the sum of the slabs: the last one is not added yet.
        int
            Steps done.
        """
        steps = a.unit.shape[1]
        width = a.values.shape[1] // steps * plan.steps
        shape = len(a.base), len(b.base)
        sums, slab = (each[: shape[0] * shape[1]].reshape(shape) for each in self._room)
        np.matmul(a.values[:, :width], b.values[:, :width].T, out=sums)
        if len(plan.bounds) == 1:
            return sums, None, steps
        largest = slabs.largest(sums, plan.rows, plan.columns)
        for s in range(1, len(plan.bounds)):
            if largest + plan.bounds[s] > 2.0**FLOAT32_BITS:
                return sums, None, s * plan.steps
            k = slice(s * width, (s + 1) * width)
            np.matmul(a.values[:, k], b.values[:, k].T, out=slab)
            if s + 1 < len(plan.bounds):
                largest = slabs.accumulate(sums, slab, plan.rows, plan.columns)
        return sums, slab, steps

    def _by_steps(
        self, rows: I64, columns: I64, first: int, c: F32 | None, report: TileReport
    ) -> None:
        """Take one step at a time from `first` on, by float64 or integers."""
        if c is None:
            c = self._zeros(rows, columns)
        if self._groups(rows, columns, first, np.ascontiguousarray(c), report):
            return
        steps = self.a.unit.shape[1]
        a = self.a.rows(_span(rows), slice(None))
        b = self.b.rows(_span(columns), slice(None))
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
