"""decode_factors_jit: the loops of `decode_factors`, compiled by Numba."""

from __future__ import annotations

from fp4ref.numerics.compiled import njit, prange
from fp4ref.numerics.factors import MOST_BINADES, NONE, Codes, Factors, Table
from fp4ref.numerics.formats import U8


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


@njit(cache=True)
def decode_serial(
    codes: Codes, scales: U8, element: Table, scale: Table, out: Factors
) -> None:
    """Decode all rows on the calling thread."""
    for i in range(codes.shape[0]):
        decode_row(i, codes, scales, element, scale, out)


@njit(cache=True, parallel=True)
def decode_parallel(
    codes: Codes, scales: U8, element: Table, scale: Table, out: Factors
) -> None:
    """Decode all rows on Numba's threads."""
    for i in prange(codes.shape[0]):
        decode_row(i, codes, scales, element, scale, out)
