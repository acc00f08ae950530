"""decode_factors_jit: the loops of `decode_factors`, compiled by Numba.

E2M1 has loops of its own: a block's unit follows from the set of its magnitudes, and
its squares add up to an integer, so that the loops over elements become SIMD code.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fp4ref.numerics.compiled import njit, prange
from fp4ref.numerics.factors import MOST_BINADES, NONE, Codes, Factors, Table
from fp4ref.numerics.formats import I64, U8


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


@njit(cache=True)
def bound_e2m1_row(
    i: int, codes: U8, scales: U8, units: I64, scale: Table, out: Factors
) -> None:
    """Do as `bound_row`.

    Parameters
    ----------
    units : (256,)
        The least unit of each set of magnitudes; bit m stands for the magnitude m.
    """
    blocks = scales.shape[1]
    vec, per_step = codes.shape[1] // blocks, blocks // out.unit.shape[1]
    lowest, highest, special = NONE, -NONE, 0
    for block in range(blocks):
        code = scales[i, block]
        present = np.int32(0)
        for k in range(block * vec, (block + 1) * vec):
            present |= np.int32(1) << (np.int32(codes[i, k]) & np.int32(7))
        special |= scale.special[code]
        if units[present] < NONE and scale.unit[code] < NONE:
            unit, top = units[present] + scale.unit[code], scale.top[code]
            s = block // per_step
            out.unit[i, s] = min(out.unit[i, s], unit)
            out.top[i, s] = max(out.top[i, s], top)
            lowest, highest = min(lowest, unit), max(highest, top)
    out.base[i] = lowest if lowest < NONE else 0
    out.nan[i] = special & 2 != 0
    out.apart[i] = not out.nan[i] and highest - out.base[i] > MOST_BINADES


@njit(cache=True)
def decode_e2m1_row(
    i: int,
    codes: U8,
    scales: U8,
    halves: npt.NDArray[np.int32],
    units: I64,
    scale: Table,
    out: Factors,
) -> None:
    """Decode one row of E2M1.

    Parameters
    ----------
    halves : (16,)
        Twice each code's value.
    """
    bound_e2m1_row(i, codes, scales, units, scale, out)
    if out.nan[i] or out.apart[i]:
        return
    blocks = scales.shape[1]
    vec, per_step = codes.shape[1] // blocks, blocks // out.unit.shape[1]
    to_base = 0.5 * 2.0 ** -out.base[i]
    for block in range(blocks):
        factor = scale.value[scales[i, block]] * to_base
        narrow = np.float32(factor)
        square = np.int32(0)
        for k in range(block * vec, (block + 1) * vec):
            half = halves[codes[i, k]]
            out.values[i, k] = np.float32(half) * narrow
            square += half * half
        out.square[i, block // per_step] += square * (factor * factor)


@njit(cache=True)
def decode_e2m1_serial(
    codes: U8,
    scales: U8,
    halves: npt.NDArray[np.int32],
    units: I64,
    scale: Table,
    out: Factors,
) -> None:
    """Decode all rows of E2M1 on the calling thread."""
    for i in range(codes.shape[0]):
        decode_e2m1_row(i, codes, scales, halves, units, scale, out)


@njit(cache=True, parallel=True)
def decode_e2m1_parallel(
    codes: U8,
    scales: U8,
    halves: npt.NDArray[np.int32],
    units: I64,
    scale: Table,
    out: Factors,
) -> None:
    """Decode all rows of E2M1 on Numba's threads."""
    for i in prange(codes.shape[0]):
        decode_e2m1_row(i, codes, scales, halves, units, scale, out)
