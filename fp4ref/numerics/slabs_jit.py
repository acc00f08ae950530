"""slabs_jit: the loops of `slabs`, compiled by Numba; each takes a range of rows."""

from __future__ import annotations

import numpy as np

from fp4ref.numerics.compiled import njit
from fp4ref.numerics.doubts import I32, Masks, Sums
from fp4ref.numerics.factors import Bools
from fp4ref.numerics.formats import F32, F64

DROPPED = -(1 << 29)


@njit(cache=True, nogil=True)
def largest(
    first: int, last: int, sums: F32, masks: Masks, rows: Bools, most: I32
) -> None:
    """Do `slabs.largest`; `most` gets what it returns, as bits."""
    columns = masks.columns
    for i in range(first, last):
        if rows[i]:
            found, mask = np.int32(0), masks.rows[i]
            for j in range(sums.shape[1]):
                bits = np.float32(sums[i, j]).view(np.int32)
                found = max(found, bits & (mask | columns[j]))
            most[i] = found


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
