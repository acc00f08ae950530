"""float32_step_jit: the loops of `float32_step`, compiled by Numba."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from fp4ref.numerics.compiled import njit
from fp4ref.numerics.decoded_operands import GROUP, K_STEP
from fp4ref.numerics.dot_jit import GROUPS
from fp4ref.numerics.factors import Bools
from fp4ref.numerics.formats import F32, F64, U8
from fp4ref.numerics.group_sums_jit import HALVES
from fp4ref.numerics.sides import NO_UNIT, ScaleNumbers
from fp4ref.numerics.vectors import wide_vectors

PAIRS: Final = GROUP // 2
"""Bytes of a group."""

ROWS: Final = 4
"""Of A that are multiplied at a time."""

UNITS: Final = 2.0**24
"""A sum of at most so many units is exact in float32."""

KEPT: Final = 2.0**35
"""Units of what the model keeps below the largest exponent."""

NEAR: Final = 2.0**-12
"""Of the largest power: the model keeps the last bit of a float32 from there on."""

FAR: Final = 2.0**60
"""Units and norms between this and its inverse leave float32 room."""

ROUND_UP: Final = 1 + 2.0**-30
"""On norms, whose sums and roots are rounded."""

_CODES = np.arange(256)
LOW: Final = HALVES[_CODES & 15].astype(np.float32)
HIGH: Final = HALVES[_CODES >> 4].astype(np.float32)
SQUARES: Final = (LOW**2 + HIGH**2).astype(np.int64)
"""Twice the two elements of a byte, and the sum of the squares of these."""


class Operand(NamedTuple):
    """A or B of one instruction.

    Attributes
    ----------
    values : (rows and zeros to a multiple of `ROWS`, 64)
        Of each group the even elements, then the odd ones: along K any order will do.
        Twice an element times half its scale.
    unit, power
        Of each row the least unit and the largest power of two of its scales, of
        groups that are not all zero.
    length
        Of each row its norm in units; infinite where float32 will not do.
    """

    values: F32
    unit: F64
    power: F64
    length: F64


@njit(cache=True)
def lay_out(packed: U8, sign: float, scales: U8, of: ScaleNumbers) -> Operand:
    """Lay out A, or B, and find its bounds."""
    rows, of_scale = packed.shape[0], scales.shape[1]
    values = np.empty((rows + -rows % ROWS, K_STEP), np.float32)
    values[rows:], bounds = 0, np.empty((3, rows))
    for row in range(rows):
        line, to = packed[row], values[row]
        unit, power, square, is_nan = NO_UNIT, 0.0, 0.0, False
        for group in range(GROUPS):
            scale = scales[row, group * of_scale // GROUPS]
            value, squares = of.value[scale], 0
            factor, first = np.float32(sign * value), GROUP * group
            pairs = line[PAIRS * group : PAIRS * group + PAIRS]
            low, high = to[first : first + PAIRS], to[first + PAIRS : first + GROUP]
            for i in range(PAIRS):
                pair = pairs[i]
                low[i], high[i] = LOW[pair] * factor, HIGH[pair] * factor
                squares += SQUARES[pair]
            is_nan |= of.significand[scale] < 0
            if squares != 0:
                unit, power = min(unit, of.unit[scale]), max(power, of.power[scale])
                square += squares * (value * value)
        norm = np.sqrt(square) * ROUND_UP
        fits = not is_nan and norm <= FAR and unit >= 1 / FAR
        bounds[0, row], bounds[1, row] = unit, power
        bounds[2, row] = norm / unit if fits else np.inf
    return Operand(values, bounds[0], bounds[1], bounds[2])


@njit(cache=True)
def transposed(values: F32) -> F32:
    """Return B with the lanes along its rows."""
    rows, depth = values.shape
    found = np.empty((depth, rows), np.float32)
    for k in range(depth):
        for row in range(rows):
            found[k, row] = values[row, k]
    return found


@njit(cache=True, fastmath={"contract"})
def four_rows(a: F32, b: F32, to: F32) -> None:
    """Multiply four rows of A by B; all sums are exact, so that their order is free."""
    wide_vectors()
    x, y, z, w = a[0], a[1], a[2], a[3]
    to_x, to_y, to_z, to_w = to[0], to[1], to[2], to[3]
    to[:] = 0
    for k in range(0, x.size, 4):
        x0, x1, x2, x3 = x[k], x[k + 1], x[k + 2], x[k + 3]
        y0, y1, y2, y3 = y[k], y[k + 1], y[k + 2], y[k + 3]
        z0, z1, z2, z3 = z[k], z[k + 1], z[k + 2], z[k + 3]
        w0, w1, w2, w3 = w[k], w[k + 1], w[k + 2], w[k + 3]
        for j in range(to_x.size):
            b0, b1, b2, b3 = b[k, j], b[k + 1, j], b[k + 2, j], b[k + 3, j]
            to_x[j] = to_x[j] + x0 * b0 + x1 * b1 + x2 * b2 + x3 * b3
            to_y[j] = to_y[j] + y0 * b0 + y1 * b1 + y2 * b2 + y3 * b3
            to_z[j] = to_z[j] + z0 * b0 + z1 * b1 + z2 * b2 + z3 * b3
            to_w[j] = to_w[j] + w0 * b0 + w1 * b1 + w2 * b2 + w3 * b3


@njit(cache=True)
def add_row(products: F32, d: F32, least: float, most: float) -> bool:
    """Add products to a row of D, if that is exact; say whether it was.

    Parameters
    ----------
    least, most
        Magnitudes of a sum and of D that the model truncates nothing of.
    """
    wide_vectors()
    low, high = np.float32(least), np.float32(most)
    doubts = 0
    for j in range(d.size):
        old, product = d[j], products[j]
        total = old + product
        # TwoSum (Knuth): total + error is the exact sum.
        part = total - old
        error = (old - (total - part)) + (product - part)
        small = (abs(total) < low) & (old != 0)
        doubts |= (error != 0) | small | (abs(old) > high)
        products[j] = total
    if doubts == 0:
        d[:] = products
    return doubts == 0


@njit(cache=True)
def add_step(
    packed: tuple[U8, U8],
    signs: tuple[float, float],
    scales: tuple[U8, U8],
    of: ScaleNumbers,
    d: F32,
    at: tuple[int, int],
    left: Bools,
) -> int:
    """Do `float32_step.add_step`; mark the rows that are left, and count them."""
    wide_vectors()
    a = lay_out(packed[0], signs[0], scales[0], of)
    b = lay_out(packed[1], signs[1], scales[1], of)
    by_lane = transposed(b.values[: b.unit.size])
    length = b.length.max() / UNITS
    power, unit = b.power.max() * NEAR, b.unit.min() * KEPT
    (top, first), (rows, columns) = at, (left.size, b.unit.size)
    products = np.empty((ROWS, columns), np.float32)
    left[:] = True
    for some in range(0, rows, ROWS):
        stop = min(some + ROWS, rows)
        if a.length[some:stop].min() * length <= 1:
            four_rows(a.values[some : some + ROWS], by_lane, products)
        for i in range(some, stop):
            if a.length[i] * length <= 1:
                row, sums = d[top + i, first : first + columns], products[i - some]
                left[i] = not add_row(sums, row, a.power[i] * power, a.unit[i] * unit)
    return int(left.sum())
