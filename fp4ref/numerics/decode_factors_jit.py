"""decode_factors_jit: the loops of `decode_factors`, compiled by Numba.

E2M1 has loops of its own: a block's unit follows from its magnitudes or-ed together,
and its squares add up to an integer, so that the loops over elements become SIMD code.
"""

from __future__ import annotations

import numpy as np

from fp4ref.numerics.compiled import njit
from fp4ref.numerics.decoded_operands import GROUP, K_STEP
from fp4ref.numerics.doubts import I32
from fp4ref.numerics.factors import MOST_BINADES, NONE, Codes, E2M1Table, Factors, Table
from fp4ref.numerics.formats import F32, U8

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
        out.values[i] = 0
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
def measure_e2m1(codes: U8, sums: I32, present: I32, squares: I32) -> None:
    """Of each 16 codes of a row, or the halves together and add up their squares."""
    for group in range(present.size):
        some, total = np.int32(0), np.int32(0)
        for k in range(GROUP):
            of_code = sums[codes[GROUP * group + k]]
            some |= of_code
            total += of_code
        present[group], squares[group] = some >> 16, total & 0xFFFF


@njit(cache=True)
def fill_e2m1(codes: U8, halves: F32, factors: F32, values: F32) -> None:
    """Write the halves of a row times the factors of its groups."""
    for group in range(factors.size):
        factor = factors[group]
        for k in range(GROUP * group, GROUP * (group + 1)):
            values[k] = halves[codes[k]] * factor


@njit(cache=True, nogil=True)
def decode_e2m1(
    first: int,
    last: int,
    codes: U8,
    scales: U8,
    element: E2M1Table,
    scale: Table,
    out: Factors,
) -> None:
    """Decode some rows of E2M1."""
    k, blocks, steps = codes.shape[1], scales.shape[1], out.unit.shape[1]
    groups = k // GROUP
    wide = 1 if groups == 2 * blocks else 0  # two groups have one scale
    present, squares = np.empty(groups, np.int32), np.empty(groups, np.int32)
    factors = np.empty(groups, np.float32)
    for i in range(first, last):
        measure_e2m1(codes[i], element.sums, present, squares)
        lowest, highest, special = NONE, -NONE, 0
        for step in range(steps):
            unit, top = NONE, -NONE
            for group in range(GROUPS * step, GROUPS * (step + 1)):
                code = scales[i, group >> wide]
                least, of_scale = element.unit[present[group]], scale.unit[code]
                special |= scale.special[code]
                if least < NONE and of_scale < NONE:
                    unit = min(unit, least + of_scale)
                    top = max(top, scale.top[code])
            out.unit[i, step], out.top[i, step] = unit, top
            lowest, highest = min(lowest, unit), max(highest, top)
        out.base[i] = lowest if lowest < NONE else 0
        out.nan[i] = special & 2 != 0
        out.apart[i] = not out.nan[i] and highest - out.base[i] > MOST_BINADES
        if out.nan[i] or out.apart[i]:
            out.values[i] = 0
            continue
        to_base = 0.5 * 2.0 ** -out.base[i]
        for step in range(steps):
            total = 0.0
            for group in range(GROUPS * step, GROUPS * (step + 1)):
                factor = scale.value[scales[i, group >> wide]] * to_base
                total += squares[group] * (factor * factor)
                factors[group] = factor
            out.square[i, step] = total
        fill_e2m1(codes[i], element.halves, factors, out.values[i])
