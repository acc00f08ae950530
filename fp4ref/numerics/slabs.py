"""slabs: passes over a tile of D between two products of slabs, by NumPy or Numba.

`slabs_jit` has the same loops for Numba; they are taken where it can be imported.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from fp4ref.numerics.doubts import I32, Doubts, Masks, Sums
from fp4ref.numerics.factors import Bools
from fp4ref.numerics.formats import F32, F64

_DROPPED: Final = 29
_LEAST: Final = 2.0**-126
_BEYOND: Final = 2.0**128
_EXPONENT: Final = 0x7FF << 52
_ROUNDER: Final = 1.5 * 2.0**52
"""A number plus and minus it is rounded to a whole one."""


def largest(sums: F32, masks: Masks, rows: Bools) -> F64:
    """Return the largest magnitude of some rows, of those that matter; 0 of others."""
    from fp4ref.numerics import compiled

    most = np.zeros(len(sums), np.int32)
    if compiled.AVAILABLE:
        from fp4ref.numerics import slabs_jit

        _over_rows(slabs_jit.largest, sums, masks, rows, most)
    else:
        matter = masks.columns != 0
        for of, columns in ((rows, matter), (rows & (masks.rows != 0), ~matter)):
            if columns.any():
                some = _magnitude_bits(sums[of][:, columns])
                most[of] = np.maximum(most[of], some)
    return most.view(np.float32).astype(np.float64)


def _magnitude_bits(sums: F32) -> I32:
    most: F32 = np.maximum(sums.max(axis=1, initial=0), -sums.min(axis=1, initial=0))
    return most.view(np.int32) & np.int32(0x7FFFFFFF)


def _over_rows(loop: Any, sums: F32, *arguments: Any) -> None:
    """Run a loop over the rows of a tile."""
    from fp4ref.numerics import compiled

    least = compiled.PASS // max(sums.shape[1], 1)
    compiled.in_pieces(loop, len(sums), least, sums, *arguments)


def masks(rows: Bools, columns: Bools) -> Masks:
    """Return masks by which the common outputs of these do not matter."""
    return Masks(*((~each * 0x7FFFFFFF).astype(np.int32) for each in (rows, columns)))


def scale_sums(sums: F32, factor_a: F64, factor_b: F64) -> None:
    """Multiply integers by their units in place; never -0. This is exact."""
    from fp4ref.numerics import compiled

    if compiled.AVAILABLE:
        from fp4ref.numerics import slabs_jit

        _over_rows(slabs_jit.scale_sums, sums, *_narrow(factor_a, factor_b))
        return
    sums[:] = sums * factor_a[:, np.newaxis] * factor_b
    sums += np.float32(0)


def _narrow(*factors: F64) -> tuple[F64, ...] | tuple[F32, ...]:
    """Return factors as float32 if their product is one too."""
    if all(each.min() > 2.0**-60 and each.max() < 2.0**60 for each in factors):
        return tuple(each.astype(np.float32) for each in factors)
    return factors


def add_truncated(c: F32, slab: Sums, factor_a: F64, factor_b: F64) -> None:
    """Add a slab to C in place, RZ to 24 bits; no result is subnormal or -0."""
    from fp4ref.numerics import compiled

    if compiled.AVAILABLE:
        from fp4ref.numerics import slabs_jit

        _over_rows(slabs_jit.add_truncated, c, slab, factor_a, factor_b)
        return
    total = c + slab * factor_a[:, np.newaxis] * factor_b
    c[:] = truncate(total)
    c += np.float32(0)


def truncate(total: F64) -> F64:
    """Clear what float32 does not hold of normal numbers."""
    kept = total.view(np.int64) & -(1 << _DROPPED)
    return kept.view(np.float64)


def add_doubted(
    c: F32, slab: Sums, factor_a: F64, factor_b: F64, doubts: Doubts
) -> Bools | None:
    """Do as `add_truncated`, but keep C and mark the output where that may be wrong.

    `groups` does this where there is Numba.

    Returns
    -------
    (rows, columns) or None
        The marks; None if there are none.
    """
    with np.errstate(all="ignore"):
        marks = _add_doubted(c, slab, factor_a[:, np.newaxis] * factor_b, doubts)
    return marks if marks.any() else None


def _add_doubted(c: F32, slab: Sums, factor: F64, doubts: Doubts) -> Bools:
    old = c.astype(np.float64)
    total = old + slab * factor
    kept = truncate(total)
    c_top = _power(old)
    e_max = np.maximum(doubts.top_a[:, np.newaxis] * doubts.top_b, c_top)
    last = np.maximum(e_max, _LEAST) * 2.0**-doubts.fraction_bits
    lossy = doubts.unit_a[:, np.newaxis] * doubts.unit_b < last
    lossy |= old + last * _ROUNDER - last * _ROUNDER != old
    rest, ulp = np.abs(total - kept), _power(total) * 2.0**-23
    near = (rest < doubts.margin * last) | (ulp - rest < doubts.margin * last)
    size = np.abs(total)
    marks: Bools = (lossy & near) | ~(size < _BEYOND) | ((size < _LEAST) & (size > 0))
    np.copyto(c, np.where(marks, old, kept).astype(np.float32))
    np.copyto(c, c + np.float32(0), where=~marks)
    return marks


def _power(x: F64) -> F64:
    """Return 2^exponent of each number; 0 of 0."""
    return (x.view(np.int64) & _EXPONENT).view(np.float64)
