"""group_sums_jit: the 16 products of each group, and what bounds its term, in int16."""

from __future__ import annotations

from typing import Final

import numpy as np

from fp4ref.numerics.compiled import njit
from fp4ref.numerics.decoded_operands import GROUP, K_STEP
from fp4ref.numerics.dot_jit import GROUPS
from fp4ref.numerics.formats import U8
from fp4ref.numerics.sides import I16, Chain, Side
from fp4ref.numerics.vectors import wide_vectors

HALVES: Final = np.array(
    [0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12], np.int16
)
BEYOND: Final = np.int16(600)
"""Exponent beyond all that occur, which float64 has."""

DEAD: Final = np.int16(-2000)
"""Exponent of a group that is all zero, or whose scale is zero or NaN; minus it, the
exponent of its unit."""


@njit(cache=True, forceinline=True)
def sum_group(a: U8, row: int, b: I16, at: tuple[int, int], sums: I16, to: int) -> None:
    """Add the 16 products of a group for each lane.

    Parameters
    ----------
    at
        Block of B, and first element of the group.
    to
        Row of `sums`.
    """
    block, k = at
    a0, a1 = HALVES[a[row, k]], HALVES[a[row, k + 1]]
    a2, a3 = HALVES[a[row, k + 2]], HALVES[a[row, k + 3]]
    a4, a5 = HALVES[a[row, k + 4]], HALVES[a[row, k + 5]]
    a6, a7 = HALVES[a[row, k + 6]], HALVES[a[row, k + 7]]
    a8, a9 = HALVES[a[row, k + 8]], HALVES[a[row, k + 9]]
    a10, a11 = HALVES[a[row, k + 10]], HALVES[a[row, k + 11]]
    a12, a13 = HALVES[a[row, k + 12]], HALVES[a[row, k + 13]]
    a14, a15 = HALVES[a[row, k + 14]], HALVES[a[row, k + 15]]
    for j in range(sums.shape[1]):
        sums[to, j] = (
            (a0 * b[block, k, j] + a1 * b[block, k + 1, j])
            + (a2 * b[block, k + 2, j] + a3 * b[block, k + 3, j])
            + (a4 * b[block, k + 4, j] + a5 * b[block, k + 5, j])
            + (a6 * b[block, k + 6, j] + a7 * b[block, k + 7, j])
            + (a8 * b[block, k + 8, j] + a9 * b[block, k + 9, j])
            + (a10 * b[block, k + 10, j] + a11 * b[block, k + 11, j])
            + (a12 * b[block, k + 12, j] + a13 * b[block, k + 13, j])
            + (a14 * b[block, k + 14, j] + a15 * b[block, k + 15, j])
        )


@njit(cache=True, forceinline=True)
def bound_terms(
    row: int,
    a: Side,
    b: Side,
    at: tuple[int, int],
    tops: I16,
    units: I16,
    to: int,
) -> None:
    """Find the largest exponent and the least unit of four terms for each lane.

    Parameters
    ----------
    at
        Block of B, and first group.
    tops, units
        Exponents, in their row `to`.
    """
    block, f = at
    e0, e1 = a.exponent[row, f, 0], a.exponent[row, f + 1, 0]
    e2, e3 = a.exponent[row, f + 2, 0], a.exponent[row, f + 3, 0]
    u0, u1 = a.unit[row, f, 0], a.unit[row, f + 1, 0]
    u2, u3 = a.unit[row, f + 2, 0], a.unit[row, f + 3, 0]
    e, u = b.exponent, b.unit
    for j in range(tops.shape[1]):
        top = max(np.int16(e0 + e[block, f, j]), np.int16(e1 + e[block, f + 1, j]))
        top = max(top, np.int16(e2 + e[block, f + 2, j]))
        top = max(top, np.int16(e3 + e[block, f + 3, j]))
        tops[to, j] = max(top, -BEYOND)
    for j in range(tops.shape[1]):
        unit = min(np.int16(u0 + u[block, f, j]), np.int16(u1 + u[block, f + 1, j]))
        unit = min(unit, np.int16(u2 + u[block, f + 2, j]))
        unit = min(unit, np.int16(u3 + u[block, f + 3, j]))
        units[to, j] = min(unit, BEYOND)


@njit(cache=True, nogil=True)
def sum_groups(
    first: int,
    last: int,
    of: Chain,
    at: tuple[int, int],
    sums: I16,
    tops: I16,
    units: I16,
) -> None:
    """Add the products of the groups of some rows for each lane.

    A group of B stays in the first cache for all rows.

    Parameters
    ----------
    at
        Block of B, and step.
    sums : (4 * rows, lanes)
    tops, units : (rows, lanes)
        As `bound_terms` gives them.
    """
    wide_vectors()
    block, step = at
    for g in range(GROUPS):
        group = (block, K_STEP * step + GROUP * g)
        for i in range(first, last):
            sum_group(of.a.codes, i, of.b.halves, group, sums, GROUPS * (i - first) + g)
    for i in range(first, last):
        bound_terms(i, of.a, of.b, (block, GROUPS * step), tops, units, i - first)
