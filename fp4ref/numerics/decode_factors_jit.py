"""decode_factors_jit: the loops of `decode_factors`, compiled by Numba.

E2M1 has loops of its own: a block's unit follows from its magnitudes or-ed together,
and its squares add up to an integer, so that the loops over elements become SIMD code.
"""

from __future__ import annotations

import numpy as np

from fp4ref.numerics.compiled import njit
from fp4ref.numerics.decoded_operands import GROUP, K_STEP
from fp4ref.numerics.doubts import I32
from fp4ref.numerics.factors import MOST_BINADES, NONE, Codes, Factors, Table
from fp4ref.numerics.formats import F32, I64, U8

GROUPS = K_STEP // GROUP


@njit(cache=True)
def bound_row(
    i: int, codes: Codes, scales: U8, element: Table, scale: Table, out: Factors
) -> None:
    """Find the units, tops and specials of one row."""
    blocks = scales.shape[1]
    vec, per_step = codes.shape[1] // blocks, blocks // out.unit.shape[1]
    lowest, highest, special = NONE, -NONE, 0
    for block in range(blocks):
        code = scales[i, block]
        unit, top = NONE, -NONE
        for k in range(block * vec, (block + 1) * vec):
            unit = min(unit, element.unit[codes[i, k]])
            top = max(top, element.top[codes[i, k]])
            special |= element.special[codes[i, k]]
        special |= scale.special[code]
        if unit < NONE and scale.unit[code] < NONE:
            unit += scale.unit[code]
            top += scale.top[code]
            s = block // per_step
            out.unit[i, s] = min(out.unit[i, s], unit)
            out.top[i, s] = max(out.top[i, s], top)
            lowest, highest = min(lowest, unit), max(highest, top)
    out.base[i] = lowest if lowest < NONE else 0
    out.nan[i] = special & 2 != 0
    wide = highest - out.base[i] > MOST_BINADES
    out.apart[i] = not out.nan[i] and (special & 1 != 0 or wide)


@njit(cache=True)
def decode_row(
    i: int, codes: Codes, scales: U8, element: Table, scale: Table, out: Factors
) -> None:
    """Decode one row."""
    bound_row(i, codes, scales, element, scale, out)
    if out.nan[i] or out.apart[i]:
        return
    blocks = scales.shape[1]
    vec, per_step = codes.shape[1] // blocks, blocks // out.unit.shape[1]
    to_base = 2.0 ** -out.base[i]
    for block in range(blocks):
        factor = scale.value[scales[i, block]] * to_base
        square = 0.0
        for k in range(block * vec, (block + 1) * vec):
            value = element.value[codes[i, k]] * factor
            out.values[i, k] = value
            square += value * value
        out.square[i, block // per_step] += square


@njit(cache=True, nogil=True)
def decode(
    first: int,
    last: int,
    codes: Codes,
    scales: U8,
    element: Table,
    scale: Table,
    out: Factors,
) -> None:
    """Decode some rows."""
    for i in range(first, last):
        decode_row(i, codes, scales, element, scale, out)


@njit(cache=True)
def halves(code: int) -> np.int32:
    """Return twice the magnitude of an E2M1 code: of 0 to 7, 0 1 2 3 4 6 8 12."""
    m = np.int32(code) & np.int32(7)
    return max(max(m, m + m - np.int32(4)), np.int32(4) * m - np.int32(16))


@njit(cache=True)
def measure_e2m1(codes: U8, present: I32, squares: I32) -> None:
    """Of each 16 codes of a row, or the halves together and add up their squares."""
    for group in range(present.size):
        some, square = np.int32(0), np.int32(0)
        for k in range(GROUP):
            half = halves(codes[GROUP * group + k])
            some |= half
            square += half * half
        present[group], squares[group] = some, square


@njit(cache=True)
def fill_e2m1(codes: U8, factors: F32, values: F32) -> None:
    """Write twice the elements of a row times their factors."""
    for k in range(codes.size):
        code = np.int32(codes[k])
        sign = np.int32(1) - (code >> np.int32(2) & np.int32(2))
        values[k] = np.float32(halves(code) * sign) * factors[k]


@njit(cache=True, nogil=True)
def decode_e2m1(
    first: int,
    last: int,
    codes: U8,
    scales: U8,
    units: I64,
    scale: Table,
    out: Factors,
) -> None:
    """Decode some rows of E2M1.

    Parameters
    ----------
    units : (16,)
        The least unit of magnitudes whose halves, or-ed together, are the index.
    """
    k, blocks, steps = codes.shape[1], scales.shape[1], out.unit.shape[1]
    groups = k // GROUP
    wide = 1 if groups == 2 * blocks else 0  # two groups have one scale
    present, squares = np.empty(groups, np.int32), np.empty(groups, np.int32)
    factors = np.empty(k, np.float32)
    for i in range(first, last):
        measure_e2m1(codes[i], present, squares)
        lowest, highest, special = NONE, -NONE, 0
        for step in range(steps):
            unit, top = NONE, -NONE
            for group in range(GROUPS * step, GROUPS * (step + 1)):
                code, least = scales[i, group >> wide], units[present[group]]
                special |= scale.special[code]
                if least < NONE and scale.unit[code] < NONE:
                    unit = min(unit, least + scale.unit[code])
                    top = max(top, scale.top[code])
            out.unit[i, step], out.top[i, step] = unit, top
            lowest, highest = min(lowest, unit), max(highest, top)
        out.base[i] = lowest if lowest < NONE else 0
        out.nan[i] = special & 2 != 0
        out.apart[i] = not out.nan[i] and highest - out.base[i] > MOST_BINADES
        if out.nan[i] or out.apart[i]:
            continue
        to_base = 0.5 * 2.0 ** -out.base[i]
        for step in range(steps):
            total = 0.0
            for group in range(GROUPS * step, GROUPS * (step + 1)):
                factor = scale.value[scales[i, group >> wide]] * to_base
                total += squares[group] * (factor * factor)
                narrow = np.float32(factor)
                for at in range(GROUP * group, GROUP * (group + 1)):
                    factors[at] = narrow
            out.square[i, step] = total
        fill_e2m1(codes[i], factors, out.values[i])
