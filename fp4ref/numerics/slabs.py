"""slabs: passes over a tile of D between two products of slabs, by NumPy or Numba.

`slabs_jit` has the same loops for Numba; they are taken where it can be imported.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from fp4ref.numerics.doubts import Doubts, Sums
from fp4ref.numerics.factors import Bools
from fp4ref.numerics.formats import F32, F64

KEPT_BITS: Final = 24
"""Of a float32 significand."""

_DROPPED: Final = 29
_LEAST: Final = 2.0**-126
_BEYOND: Final = 2.0**128
_EXPONENT: Final = 0x7FF << 52
_ROUNDER: Final = 1.5 * 2.0**52
"""A number plus and minus it is rounded to a whole one."""


def largest(sums: F32, rows: Bools, columns: Bools) -> float:
    """Return the largest magnitude in the given rows and columns of a tile."""
    from fp4ref.numerics import compiled

    if compiled.AVAILABLE:
        from fp4ref.numerics import slabs_jit

        return float(slabs_jit.largest(sums, rows, column_masks(columns)))
    chosen = np.abs(sums) * columns
    return float(chosen[rows].max(initial=0))


def accumulate(sums: F32, slab: F32, rows: Bools, columns: Bools) -> float:
    """Add a slab to the sums in place; returns what `largest` does."""
    from fp4ref.numerics import compiled

    if compiled.AVAILABLE:
        from fp4ref.numerics import slabs_jit

        return float(slabs_jit.accumulate(sums, slab, rows, column_masks(columns)))
    sums += slab
    return largest(sums, rows, columns)


def column_masks(columns: Bools) -> npt.NDArray[np.int32]:
    """Return a mask of the magnitude bits of float32 for each column."""
    return np.where(columns, 0x7FFFFFFF, 0).astype(np.int32)


def scale_sums(
    sums: F32, slab: F32 | None, factor_a: F64, factor_b: F64, out: F32
) -> None:
    """Write integers, with those of a slab added, times their units; never -0.

    This is exact.
    """
    from fp4ref.numerics import compiled

    if compiled.AVAILABLE:
        from fp4ref.numerics import slabs_jit as jit

        factors = [factor_a, factor_b]
        if all(each.min() > 2.0**-60 and each.max() < 2.0**60 for each in factors):
            factors = [each.astype(np.float32) for each in factors]
        if slab is None:
            jit.scale_sums(sums, *factors, out)
        else:
            jit.add_and_scale(sums, slab, *factors, out)
        return
    if slab is not None:
        sums += slab
    out[:] = sums * factor_a[:, np.newaxis] * factor_b
    out += np.float32(0)


def add_truncated(c: F32, slab: Sums, factor_a: F64, factor_b: F64) -> None:
    """Add a slab to C in place, RZ to 24 bits; no result is subnormal or -0."""
    from fp4ref.numerics import compiled

    if compiled.AVAILABLE:
        from fp4ref.numerics import slabs_jit as jit

        many = c.size > 1 << 17
        add = jit.add_truncated_parallel if many else jit.add_truncated_serial
        add(c, slab, factor_a, factor_b)
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

    Returns
    -------
    (rows, columns) or None
        The marks; None if there are none.
    """
    from fp4ref.numerics import compiled

    if compiled.AVAILABLE:
        from fp4ref.numerics import slabs_jit as jit

        marks = np.zeros(c.shape, np.bool_)
        many = c.size > 1 << 17
        add = jit.add_doubted_parallel if many else jit.add_doubted_serial
        found = add(c, slab, factor_a, factor_b, doubts, marks)
        return marks if found else None
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
