"""slabs_jit: the loops of `slabs`, compiled by Numba."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fp4ref.numerics.compiled import njit, prange
from fp4ref.numerics.doubts import Doubts, Sums
from fp4ref.numerics.factors import Bools
from fp4ref.numerics.formats import F32, F64

I32 = npt.NDArray[np.int32]

DROPPED = -(1 << 29)
EXPONENT = 0x7FF << 52
LEAST = 2.0**-126
BEYOND = 2.0**128
ROUNDER = 1.5 * 2.0**52  # a number plus and minus it is rounded to a whole one


@njit(cache=True)
def as_float32(bits: int) -> np.float32:
    """Return the float32 of its bits."""
    return np.int32(bits).view(np.float32)


@njit(cache=True, parallel=True)
def largest(sums: F32, rows: Bools, columns: I32) -> np.float32:
    """Return the largest magnitude in rows and columns."""
    bits = np.zeros(sums.shape[0], np.int32)
    for i in prange(sums.shape[0]):
        most = np.int32(0)
        for j in range(sums.shape[1]):
            most = max(most, np.float32(sums[i, j]).view(np.int32) & columns[j])
        bits[i] = most if rows[i] else 0
    return as_float32(bits.max())


@njit(cache=True, parallel=True)
def accumulate(sums: F32, slab: F32, rows: Bools, columns: I32) -> np.float32:
    """Add a slab; returns the largest magnitude in rows and columns."""
    bits = np.zeros(sums.shape[0], np.int32)
    for i in prange(sums.shape[0]):
        most = np.int32(0)
        for j in range(sums.shape[1]):
            total = sums[i, j] + slab[i, j]
            sums[i, j] = total
            most = max(most, np.float32(total).view(np.int32) & columns[j])
        bits[i] = most if rows[i] else 0
    return as_float32(bits.max())


@njit(cache=True, parallel=True)
def scale_sums(sums: F32, factor_a: F64, factor_b: F64, out: F32) -> None:
    """Write integers times their units."""
    for i in prange(sums.shape[0]):
        for j in range(sums.shape[1]):
            value = np.float32(sums[i, j] * (factor_a[i] * factor_b[j]))
            out[i, j] = value + np.float32(0)


@njit(cache=True, parallel=True)
def add_and_scale(sums: F32, slab: F32, factor_a: F64, factor_b: F64, out: F32) -> None:
    """Add a slab to the sums and write them times their units."""
    for i in prange(sums.shape[0]):
        for j in range(sums.shape[1]):
            total = np.float32(sums[i, j] + slab[i, j])
            value = np.float32(total * (factor_a[i] * factor_b[j]))
            out[i, j] = value + np.float32(0)


@njit(cache=True)
def truncate(total: float) -> float:
    """Clear what float32 does not hold of a normal number."""
    return np.int64(np.float64(total).view(np.int64) & DROPPED).view(np.float64)


@njit(cache=True)
def power(x: float) -> float:
    """Return 2^exponent of a number; 0 of 0."""
    return np.int64(np.float64(x).view(np.int64) & EXPONENT).view(np.float64)


@njit(cache=True)
def add_truncated_row(i: int, c: F32, slab: Sums, factor: float, by: F64) -> None:
    """Add one row of a slab to C, RZ."""
    for j in range(c.shape[1]):
        total = np.float64(c[i, j]) + np.float64(slab[i, j]) * (factor * by[j])
        c[i, j] = np.float32(truncate(total)) + np.float32(0)


@njit(cache=True)
def add_truncated_serial(c: F32, slab: Sums, factor_a: F64, factor_b: F64) -> None:
    """Add a slab to C on the calling thread."""
    for i in range(c.shape[0]):
        add_truncated_row(i, c, slab, factor_a[i], factor_b)


@njit(cache=True, parallel=True)
def add_truncated_parallel(c: F32, slab: Sums, factor_a: F64, factor_b: F64) -> None:
    """Add a slab to C on Numba's threads."""
    for i in prange(c.shape[0]):
        add_truncated_row(i, c, slab, factor_a[i], factor_b)


@njit(cache=True)
def add_doubted_row(
    i: int, c: F32, slab: Sums, factor: float, by: F64, doubts: Doubts, marks: Bools
) -> int:
    """Add one row of a slab to C where that is sure; returns the number of marks."""
    unit_a, top_a = doubts.unit_a[i], doubts.top_a[i]
    place = 2.0**-doubts.fraction_bits
    margin = float(doubts.margin)
    found = 0
    for j in range(c.shape[1]):
        old = np.float64(c[i, j])
        total = old + np.float64(slab[i, j]) * (factor * by[j])
        kept = truncate(total)
        e_max, c_top = top_a * doubts.top_b[j], power(old)
        e_max = e_max if e_max > c_top else c_top
        last = (e_max if e_max > LEAST else LEAST) * place
        shift = last * ROUNDER
        lossy = (unit_a * doubts.unit_b[j] < last) | ((old + shift) - shift != old)
        rest = abs(total - kept)
        room = power(total) * 2.0**-23 - rest
        room = room if room < rest else rest
        size = abs(total)
        doubt = (lossy & (room < margin * last)) | (size >= BEYOND) | (size != size)
        doubt |= (size < LEAST) & (size > 0.0)
        marks[i, j] = doubt
        found += int(doubt)
        sure = np.float32(kept) + np.float32(0)
        c[i, j] = c[i, j] if doubt else sure
    return found


@njit(cache=True)
def add_doubted_serial(
    c: F32, slab: Sums, factor_a: F64, factor_b: F64, doubts: Doubts, marks: Bools
) -> int:
    """Add a slab to C on the calling thread."""
    found = 0
    for i in range(c.shape[0]):
        found += add_doubted_row(i, c, slab, factor_a[i], factor_b, doubts, marks)
    return found


@njit(cache=True, parallel=True)
def add_doubted_parallel(
    c: F32, slab: Sums, factor_a: F64, factor_b: F64, doubts: Doubts, marks: Bools
) -> int:
    """Add a slab to C on Numba's threads."""
    found = np.zeros(c.shape[0], np.int64)
    for i in prange(c.shape[0]):
        found[i] = add_doubted_row(i, c, slab, factor_a[i], factor_b, doubts, marks)
    return found.sum()
