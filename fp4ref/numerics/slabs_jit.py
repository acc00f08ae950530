"""slabs_jit: the loops of `slabs`, compiled by Numba; each takes a range of rows."""

from __future__ import annotations

import numpy as np

from fp4ref.numerics.compiled import njit
from fp4ref.numerics.doubts import I32, Running, Sums
from fp4ref.numerics.formats import F32, F64

DROPPED = -(1 << 29)


@njit(cache=True, nogil=True)
def add_slabs(
    first: int,
    last: int,
    sums: F32,
    slabs: tuple[F32, F32],
    of: tuple[Running, Running],
    two: bool,
    factors: tuple[F64, F64],
    most: I32,
) -> None:
    """Do `slabs.add_slabs`; `most` gets what it returns, as bits.

    Parameters
    ----------
    two
        Whether there are two slabs, or one that is named twice.
    """
    (x, y), (of_x, of_y), (factor_a, factor_b) = slabs, of, factors
    for i in range(first, last):
        largest, mask, factor = np.int32(0), of_x.rows[i], factor_a[i]
        norm_x, norm_y = of_x.norms_a[i], of_y.norms_a[i]
        for j in range(sums.shape[1]):
            matters = mask | of_x.columns[j]
            old = sums[i, j]
            total = np.float32(old + x[i, j])
            size = np.float32(abs(old) + abs(total) + norm_x * of_x.norms_b[j])
            largest = max(largest, size.view(np.int32) & matters)
            if two:
                old = total
                total = np.float32(old + y[i, j])
                size = np.float32(abs(old) + abs(total) + norm_y * of_y.norms_b[j])
                largest = max(largest, size.view(np.int32) & matters)
            value = np.float32(total * (factor * factor_b[j]))
            sums[i, j] = value + np.float32(0)
        most[i] = largest


@njit(cache=True, nogil=True)
def scale_sums(first: int, last: int, sums: F32, factor_a: F64, factor_b: F64) -> None:
    """Multiply integers by their units."""
    for i in range(first, last):
        factor = factor_a[i]
        for j in range(sums.shape[1]):
            value = np.float32(sums[i, j] * (factor * factor_b[j]))
            sums[i, j] = value + np.float32(0)


@njit(cache=True, nogil=True)
def add_truncated(
    first: int, last: int, c: F32, slab: Sums, factor_a: F64, factor_b: F64
) -> None:
    """Add a slab to C, RZ."""
    for i in range(first, last):
        for j in range(c.shape[1]):
            factor = factor_a[i] * factor_b[j]
            total = np.float64(c[i, j]) + np.float64(slab[i, j]) * factor
            kept = np.int64(total.view(np.int64) & DROPPED).view(np.float64)
            c[i, j] = np.float32(kept) + np.float32(0)
