"""groups_jit: the loops of `groups`, compiled by Numba."""

from __future__ import annotations

from typing import Final

import numpy as np

from fp4ref.numerics.compiled import njit
from fp4ref.numerics.decoded_operands import GROUP, K_STEP
from fp4ref.numerics.dot_jit import GROUPS, Four, gst_fdpa
from fp4ref.numerics.formats import F32, F64, I64, U8
from fp4ref.numerics.sides import I16, NO_UNIT, Chain, ScaleNumbers, Side

HALVES: Final = np.array(
    [0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12], np.int16
)
KEPT: Final = -(1 << 29)
"""Of a float64's bits, those that float32 has."""

SIZE: Final = (1 << 63) - 1
SIGN: Final = -(1 << 63)
EXPONENT: Final = 0x7FF << 52
LEAST: Final = 0x390 << 52
"""Bits of 2^-111. Of larger sums e_max is above -126, the exponent of subnormal C."""

RANGE: Final = (0x47F << 52) - LEAST  # to 2^128
ROUNDER: Final = 1.5 * 2.0**52
"""Times a unit: a number plus and minus it is rounded to that unit."""

ROWS: Final = 64
"""Of D in one piece of work."""


@njit(cache=True)
def lay_row(row: int, side: Side, numbers: ScaleNumbers) -> None:
    """Lay out one row."""
    lanes = side.value.shape[2]
    block, lane = row // lanes, row % lanes
    for group in range(side.scales.shape[1]):
        live = False
        for k in range(GROUP * group, GROUP * (group + 1)):
            live |= side.codes[row, k] & 7 != 0
        scale = side.scales[row, group]
        side.value[block, group, lane] = numbers.value[scale]
        if live:
            step = group // GROUPS
            power, unit = side.power[block, step, lane], side.unit[block, step, lane]
            side.power[block, step, lane] = max(power, numbers.power[scale])
            side.unit[block, step, lane] = min(unit, numbers.unit[scale])
    if lanes > 1:
        for k in range(side.codes.shape[1]):
            side.halves[block, k, lane] = HALVES[side.codes[row, k]]


@njit(cache=True, nogil=True)
def lay_rows(first: int, last: int, side: Side, numbers: ScaleNumbers) -> None:
    """Lay out some rows."""
    for row in range(first, last):
        lay_row(row, side, numbers)


@njit(cache=True)
def sum_group(a: U8, b: I16, sums: I16) -> None:
    """Add the 16 products of a group for each lane."""
    a0, a1, a2, a3 = HALVES[a[0]], HALVES[a[1]], HALVES[a[2]], HALVES[a[3]]
    a4, a5, a6, a7 = HALVES[a[4]], HALVES[a[5]], HALVES[a[6]], HALVES[a[7]]
    a8, a9, a10, a11 = HALVES[a[8]], HALVES[a[9]], HALVES[a[10]], HALVES[a[11]]
    a12, a13, a14, a15 = HALVES[a[12]], HALVES[a[13]], HALVES[a[14]], HALVES[a[15]]
    for j in range(sums.size):
        sums[j] = (
            (a0 * b[0, j] + a1 * b[1, j] + a2 * b[2, j] + a3 * b[3, j])
            + (a4 * b[4, j] + a5 * b[5, j] + a6 * b[6, j] + a7 * b[7, j])
            + (a8 * b[8, j] + a9 * b[9, j] + a10 * b[10, j] + a11 * b[11, j])
            + (a12 * b[12, j] + a13 * b[13, j] + a14 * b[14, j] + a15 * b[15, j])
        )


@njit(cache=True, fastmath={"contract"})
def add_terms(
    sums: I16,
    scale: tuple[float, float, float, float],
    scales: F64,
    bounds: tuple[float, float],
    of: Chain,
    power: F64,
    unit: F64,
    c: F32,
    old: F32,
    doubts: I64,
) -> int:
    """Add four terms to C of each lane, RZ to 24 bits.

    Products are exact, so that contracting them with a sum changes nothing.

    Parameters
    ----------
    sums, scales : (4, lanes)
    scale
        Of A.
    bounds
        Power and unit of A.
    power, unit, c, old, doubts : (lanes,)
        `old` gets C; `doubts` what is not 0 where the result may be wrong.

    Returns
    -------
    int
        Not 0 if any is in doubt.
    """
    power_a, unit_a = bounds
    last, place, tame = of.last, of.place, of.tame
    found = np.int64(0)
    for j in range(c.size):
        before = np.float64(c[j])
        total = before + np.float64(sums[0, j]) * (scale[0] * scales[0, j])
        total += np.float64(sums[1, j]) * (scale[1] * scales[1, j])
        total += np.float64(sums[2, j]) * (scale[2] * scales[2, j])
        total += np.float64(sums[3, j]) * (scale[3] * scales[3, j])
        c_bits = np.int64(before.view(np.int64) & EXPONENT)
        e_max = max(power_a * power[j], c_bits.view(np.float64))
        least = e_max * last
        shift = least * ROUNDER
        lossy = (unit_a * unit[j] < least) | ((before + shift) - shift != before)
        room = e_max * place if lossy else 0.0
        below = np.float64(total - room).view(np.int64)
        above = np.float64(total + room).view(np.int64)
        bits = np.float64(total).view(np.int64)
        doubt = (below ^ above) & KEPT
        if not tame:
            size = (bits & SIZE) - LEAST
            doubt |= (size | (RANGE - 1 - size)) & SIGN
        found |= doubt
        doubts[j] = doubt
        old[j] = c[j]
        c[j] = np.float32(np.int64(bits & KEPT).view(np.float64))
    return int(found)


@njit(cache=True)
def live_products(a: U8, b: U8) -> int:
    """Return bits that are 0 if all products of a group are zero."""
    live = 0
    for k in range(GROUP):
        live |= int(a[k] & 7) * int(b[k] & 7)
    return live


@njit(cache=True)
def by_definition(of: Chain, at: tuple[int, int, int], sums: Four, c: int) -> int:
    """Return one output of one instruction, float32 bits.

    Parameters
    ----------
    at
        Row, column and step.
    """
    (i, j, step), a, b = at, of.a, of.b
    f, k = GROUPS * step, K_STEP * step
    row, column = a.codes[i, k : k + K_STEP], b.codes[j, k : k + K_STEP]
    live = (
        live_products(row, column) if sums[0] == 0 else 1,
        live_products(row[16:], column[16:]) if sums[1] == 0 else 1,
        live_products(row[32:], column[32:]) if sums[2] == 0 else 1,
        live_products(row[48:], column[48:]) if sums[3] == 0 else 1,
    )
    of_a, of_b = a.scales[i, f : f + GROUPS], b.scales[j, f : f + GROUPS]
    s, e = of.numbers.significand, of.numbers.exponent
    return gst_fdpa(
        sums,
        live,
        (s[of_a[0]], s[of_a[1]], s[of_a[2]], s[of_a[3]]),
        (e[of_a[0]], e[of_a[1]], e[of_a[2]], e[of_a[3]]),
        live,
        (s[of_b[0]], s[of_b[1]], s[of_b[2]], s[of_b[3]]),
        (e[of_b[0]], e[of_b[1]], e[of_b[2]], e[of_b[3]]),
        c,
    )


@njit(cache=True, forceinline=True)
def is_sure(of: Chain, at: tuple[int, int, int], sums: Four, c: float) -> bool:
    """Whether `add_terms` was right, by the exponents and units of each group."""
    (i, j, step), numbers = at, of.numbers
    f = GROUPS * step
    before = np.float64(c)
    total, unit = before, NO_UNIT
    e_max = np.int64(before.view(np.int64) & EXPONENT).view(np.float64)
    for g in range(GROUPS):
        at_a, at_b = of.a.scales[i, f + g], of.b.scales[j, f + g]
        total += np.float64(sums[g]) * (numbers.value[at_a] * numbers.value[at_b])
        e_max = max(e_max, numbers.power[at_a] * numbers.power[at_b])
        unit = min(unit, numbers.unit[at_a] * numbers.unit[at_b])
    shift = e_max * of.last * ROUNDER
    lossy = unit < e_max * of.last or (before + shift) - shift != before
    room = e_max * of.place if lossy else 0.0
    below = np.float64(total - room).view(np.int64)
    above = np.float64(total + room).view(np.int64)
    size = np.int64(np.float64(total).view(np.int64) & SIZE) - LEAST
    return bool((below ^ above) & KEPT == 0 and 0 <= size < RANGE)


@njit(cache=True, forceinline=True)
def settle(
    of: Chain, at: tuple[int, int, int], sums: I16, old: F32, doubts: I64, c: F32
) -> int:
    """Compute the outputs in doubt by the definition; returns their number.

    Parameters
    ----------
    at
        Row, first column and step.
    """
    i, first, step = at
    bits, before = c.view(np.uint32), old.view(np.uint32)
    count = 0
    for j in range(c.size):
        if doubts[j] != 0:
            of_groups = (
                np.int64(sums[0, j]),
                np.int64(sums[1, j]),
                np.int64(sums[2, j]),
                np.int64(sums[3, j]),
            )
            output = (i, first + j, step)
            if is_sure(of, output, of_groups, old[j]):
                continue
            was = int(np.int64(before[j]))
            bits[j] = by_definition(of, output, of_groups, was)
            count += 1
    return count


@njit(cache=True, nogil=True)
def chain_rows(first: int, last: int, of: Chain, start: int, stop: int, c: F32) -> int:
    """Add instructions to some rows of C in place.

    Returns
    -------
    int
        Outputs of one instruction that the definition computed.
    """
    a, b = of.a, of.b
    lanes = b.value.shape[2]
    sums = np.empty((GROUPS, lanes), np.int16)
    old, marks = np.empty(lanes, np.float32), np.empty(lanes, np.int64)
    count = 0
    for top in range(first, last, ROWS):
        for block in range(b.value.shape[0]):
            left = block * lanes
            width = min(lanes, c.shape[1] - left)
            for step in range(start, stop):
                f, k = GROUPS * step, K_STEP * step
                scales = b.value[block, f : f + GROUPS]
                power, unit = b.power[block, step, :width], b.unit[block, step, :width]
                for i in range(top, min(top + ROWS, last)):
                    ends = (a.power[i, step, 0], a.unit[i, step, 0])
                    if of.clean and ends[0] == 0.0:
                        continue
                    for g in range(GROUPS):
                        k_g = k + GROUP * g
                        sum_group(
                            a.codes[i, k_g : k_g + GROUP],
                            b.halves[block, k_g : k_g + GROUP],
                            sums[g, :width],
                        )
                    v = a.value[i, f : f + GROUPS, 0]
                    now = c[i, left : left + width]
                    scale = (v[0], v[1], v[2], v[3])
                    any_doubt = add_terms(
                        sums, scale, scales, ends, of, power, unit, now, old, marks
                    )
                    if any_doubt != 0:
                        count += settle(of, (i, left, step), sums, old, marks, now)
    return count


@njit(cache=True)
def unpack(packed: U8, flip: int) -> U8:
    """Return the codes (rows, 2 n) of packed ones (rows, n), XOR `flip`."""
    rows, half = packed.shape
    codes = np.empty((rows, 2 * half), np.uint8)
    for row in range(rows):
        for i in range(half):
            codes[row, 2 * i] = (packed[row, i] & 15) ^ flip
            codes[row, 2 * i + 1] = (packed[row, i] >> 4) ^ flip
    return codes


@njit(cache=True)
def any_nan(scales: U8, significand: I64) -> bool:
    """Whether a scale code is NaN: its significand is negative."""
    for row in range(scales.shape[0]):
        for i in range(scales.shape[1]):
            if significand[scales[row, i]] < 0:
                return True
    return False


@njit(cache=True)
def new_side(codes: U8, scales: U8, vec_size: int, lanes: int) -> Side:
    """Return a side for one instruction, to be laid out."""
    rows = codes.shape[0]
    of_groups = np.empty((rows, GROUPS), np.uint8)
    for row in range(rows):
        for group in range(GROUPS):
            of_groups[row, group] = scales[row, group * GROUP // vec_size]
    blocks = (rows + lanes - 1) // lanes
    depth = K_STEP if lanes > 1 else 0
    return Side(
        codes,
        of_groups,
        np.zeros((blocks, GROUPS, lanes)),
        np.zeros((blocks, 1, lanes)),
        np.full((blocks, 1, lanes), NO_UNIT),
        np.zeros((blocks, depth, lanes), np.int16),
    )


@njit(cache=True)
def add_instruction(
    a: U8,
    b: U8,
    sfa: U8,
    sfb: U8,
    c: F32,
    vec_size: int,
    lanes: int,
    numbers: ScaleNumbers,
    last: float,
    place: float,
    clean: bool,
    tame: bool,
) -> int:
    """Lay out both sides of one instruction and add it to C, on the calling thread."""
    of_a, of_b = new_side(a, sfa, vec_size, 1), new_side(b, sfb, vec_size, lanes)
    lay_rows(0, of_a.codes.shape[0], of_a, numbers)
    lay_rows(0, of_b.codes.shape[0], of_b, numbers)
    chain = Chain(of_a, of_b, numbers, last, place, clean, tame)
    return chain_rows(0, c.shape[0], chain, 0, 1, c)
