"""groups_jit: the loops of `groups`, compiled by Numba."""

from __future__ import annotations

from typing import Final

import numpy as np

from fp4ref.numerics.compiled import njit
from fp4ref.numerics.decoded_operands import GROUP, K_STEP
from fp4ref.numerics.dot_jit import GROUPS, Four, gst_fdpa
from fp4ref.numerics.formats import F32, F64, I64, U8
from fp4ref.numerics.group_sums_jit import DEAD, HALVES, sum_groups
from fp4ref.numerics.sides import I16, Chain, ScaleNumbers, Side
from fp4ref.numerics.vectors import wide_vectors

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

ROWS: Final = 4
"""Of D whose sums are made at once."""

CHUNK: Final = 64
"""Rows of D that use one step of B while it is in the second cache."""

BIAS: Final = 1023


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
        if live and numbers.significand[scale] > 0:
            side.exponent[block, group, lane] = numbers.exponent[scale]
            side.unit[block, group, lane] = numbers.unit_exponent[scale]
    if lanes > 1:
        for k in range(side.codes.shape[1]):
            side.halves[block, k, lane] = HALVES[side.codes[row, k]]


@njit(cache=True, nogil=True)
def lay_rows(first: int, last: int, side: Side, numbers: ScaleNumbers) -> None:
    """Lay out some rows."""
    for row in range(first, last):
        lay_row(row, side, numbers)


@njit(cache=True, fastmath={"contract"})
def add_terms(
    sums: I16,
    tops: I16,
    units: I16,
    scale: tuple[float, float, float, float],
    scales: F64,
    of: Chain,
    c: F32,
    old: F32,
    doubts: I64,
) -> int:
    """Add four terms to C of each lane, RZ to 24 bits.

    Products are exact, so that contracting them with a sum changes nothing.

    Parameters
    ----------
    sums, scales : (4, lanes)
        `scale` is A's.
    tops, units, c, old, doubts : (lanes,)
        The exponents of `bound_terms`. `old` gets C, `doubts` what is not 0 where the
        result may be wrong.

    Returns
    -------
    int
        Not 0 if any is in doubt.
    """
    wide_vectors()
    last, place, tame = of.last, of.place, of.tame
    found = np.int64(0)
    for j in range(c.size):
        before = np.float64(c[j])
        total = before + np.float64(sums[0, j]) * (scale[0] * scales[0, j])
        total += np.float64(sums[1, j]) * (scale[1] * scales[1, j])
        total += np.float64(sums[2, j]) * (scale[2] * scales[2, j])
        total += np.float64(sums[3, j]) * (scale[3] * scales[3, j])
        c_bits = np.int64(before.view(np.int64) & EXPONENT)
        top_bits = np.int64((np.int64(tops[j]) + BIAS) << 52)
        e_max = max(top_bits.view(np.float64), c_bits.view(np.float64))
        least = e_max * last
        shift = least * ROUNDER
        unit_bits = np.int64((np.int64(units[j]) + BIAS) << 52)
        lossy = (unit_bits.view(np.float64) < least) | (
            (before + shift) - shift != before
        )
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
            was = int(np.int64(before[j]))
            bits[j] = by_definition(of, output, of_groups, was)
            count += 1
    return count


@njit(cache=True, forceinline=True)
def is_dead(unit: I16, i: int, f: int) -> bool:
    """Whether the four groups of a row from `f` on are all zero."""
    least = min(unit[i, f, 0], unit[i, f + 1, 0])
    return bool(min(least, unit[i, f + 2, 0], unit[i, f + 3, 0]) == -DEAD)


@njit(cache=True, nogil=True)
def chain_rows(first: int, last: int, of: Chain, start: int, stop: int, c: F32) -> int:
    """Add instructions to some rows of C in place.

    Returns
    -------
    int
        Outputs of one instruction that the definition computed.
    """
    wide_vectors()
    a, b = of.a, of.b
    blocks, _, lanes = b.value.shape
    sums = np.empty((ROWS * GROUPS, lanes), np.int16)
    tops = np.empty((ROWS, lanes), np.int16)
    units = np.empty((ROWS, lanes), np.int16)
    old, marks = np.empty(lanes, np.float32), np.empty(lanes, np.int64)
    count = 0
    for chunk in range(first, last, CHUNK):
        for block in range(blocks):
            left = block * lanes
            width = min(lanes, c.shape[1] - left)
            for step in range(start, stop):
                f = GROUPS * step
                scales = b.value[block, f : f + GROUPS]
                for top in range(chunk, min(chunk + CHUNK, last), ROWS):
                    end = min(top + ROWS, chunk + CHUNK, last)
                    sum_groups(top, end, of, (block, step), sums, tops, units)
                    for i in range(top, end):
                        row = i - top
                        if of.clean and is_dead(a.unit, i, f):
                            continue
                        v = a.value[i, f : f + GROUPS, 0]
                        now = c[i, left : left + width]
                        four = sums[GROUPS * row : GROUPS * (row + 1)]
                        any_doubt = add_terms(
                            four,
                            tops[row],
                            units[row],
                            (v[0], v[1], v[2], v[3]),
                            scales,
                            of,
                            now,
                            old,
                            marks,
                        )
                        if any_doubt != 0:
                            count += settle(of, (i, left, step), four, old, marks, now)
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
        np.full((blocks, GROUPS, lanes), DEAD, np.int16),
        np.full((blocks, GROUPS, lanes), -DEAD, np.int16),
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
