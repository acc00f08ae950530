"""dot_lanes_jit: the MMAs without scales for many columns of D at once, by Numba.

`dot_unscaled_jit.t_fdpa` is the definition; this is the same sum in float32 and int32,
whose loops over columns become SIMD code:

1. a product of two elements is exact in float32: it has at most 22 bits, and the
   exponents of both are at most `NEAR`;
2. times 2^(25 - e_max) it is below 2^27 and still exact, or below 1; as an int32 it is
   truncated toward zero, as the definition truncates a term;
3. sixteen such terms fit int32, and their sums and C's term float64;
4. the last 29 bits of that cleared, it is a float32, rounded toward zero.

An output is left to the definition if C is Inf or NaN, if there is C alone and it is
below 2^-`LEAST`, or if the result is subnormal or beyond float32. So are rows and
columns with other elements, Inf and NaN among them.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from fp4ref.numerics.compiled import njit
from fp4ref.numerics.decoded_operands import Terms
from fp4ref.numerics.dot_unscaled_jit import E_ZERO, FRACTION_BITS, chain_row, t_fdpa
from fp4ref.numerics.doubts import I32
from fp4ref.numerics.factors import Bools
from fp4ref.numerics.formats import F32, F64
from fp4ref.numerics.vectors import wide_vectors

NEAR: Final = 45
"""Largest exponent, and the negative of the least, of an element taken here."""

LEAST: Final = 100
"""Products of such elements have exponents above minus this."""

NOTHING: Final = -4096
"""Exponent of a zero element: no sum with another is above `E_ZERO`."""

AT_A_TIME: Final = 16
"""Terms whose sum fits int32."""


DROPPED: Final = -(1 << 29)
"""Clears the bits of a float64 that float32 has not."""


class Lanes(NamedTuple):
    """A or B: element = value; A keeps its rows, B is transposed.

    Attributes
    ----------
    values : (rows, K) or (K, columns)
        0 in rows and columns that are not plain.
    exponent
        As in `Terms`; `NOTHING` for zero.
    plain : (rows,) or (columns,)
        Whether its elements are taken here.
    """

    values: F32
    exponent: I32
    plain: Bools


class Room(NamedTuple):
    """Numbers of one row of D: (columns,)."""

    top: I32
    scale: F32
    part: I32
    total: F64
    result: F32
    doubt: Bools


@njit(cache=True)
def _tops(exponent_a: I32, exponent_b: I32, c: F32, top: I32, scale: F32) -> None:
    """Find each output's largest exponent, and the power of two that truncates."""
    wide_vectors()
    bits = c.view(np.int32)
    for j in range(top.size):
        field = np.int32((bits[j] >> np.int32(23)) & np.int32(255))
        of_c = max(field, np.int32(1)) - np.int32(127)
        top[j] = of_c if c[j] != 0 else np.int32(E_ZERO)
    for k in range(0, exponent_a.size, 4):
        a0, a1 = exponent_a[k], exponent_a[k + 1]
        a2, a3 = exponent_a[k + 2], exponent_a[k + 3]
        b0, b1 = exponent_b[k], exponent_b[k + 1]
        b2, b3 = exponent_b[k + 2], exponent_b[k + 3]
        for j in range(top.size):
            low = max(np.int32(a0 + b0[j]), np.int32(a1 + b1[j]))
            high = max(np.int32(a2 + b2[j]), np.int32(a3 + b3[j]))
            top[j] = max(top[j], max(low, high))
    to_bits = scale.view(np.int32)
    for j in range(top.size):
        field = np.int32(FRACTION_BITS + 127) - max(top[j], np.int32(-LEAST))
        to_bits[j] = field << np.int32(23)


@njit(cache=True)
def _add_terms(a: F32, b: F32, scale: F32, part: I32) -> None:
    """Add truncated terms of each output."""
    wide_vectors()
    part[:] = 0
    for k in range(0, a.size, 4):
        a0, a1, a2, a3 = a[k], a[k + 1], a[k + 2], a[k + 3]
        b0, b1, b2, b3 = b[k], b[k + 1], b[k + 2], b[k + 3]
        for j in range(part.size):
            unit = scale[j]
            low = np.int32(a0 * b0[j] * unit) + np.int32(a1 * b1[j] * unit)
            high = np.int32(a2 * b2[j] * unit) + np.int32(a3 * b3[j] * unit)
            part[j] += np.int32(low + high)


@njit(cache=True)
def _round(c: F32, room: Room) -> int:
    """Add C, round toward zero, and mark and count what is left to the definition."""
    wide_vectors()
    top, scale, total, result = room.top, room.scale, room.total, room.result
    doubts = 0
    for j in range(c.size):
        place = max(top[j], np.int32(-LEAST)) - np.int32(FRACTION_BITS)
        unit = np.int64((np.int64(place) + 1023) << 52).view(np.float64)
        value = (total[j] + np.int32(c[j] * scale[j])) * unit
        kept = np.int64(np.float64(value).view(np.int64) & DROPPED)
        result[j] = np.float32(kept.view(np.float64))
        size = abs(value)
        doubt = (size >= 2.0**128) | ((size < 2.0**-126) & (size > 0))
        doubt |= ((top[j] < -LEAST) & (c[j] != 0)) | (top[j] > 127)
        room.doubt[j] = doubt
        doubts += doubt
    return doubts


@njit(cache=True)
def add_step(
    i: int, first: int, k_step: int, of: tuple[Lanes, Lanes], c: F32, room: Room
) -> int:
    """Find one row of D after one instruction; return how many outputs are in doubt."""
    a, b = of
    last = first + k_step
    exponent_b = b.exponent[first:last]
    _tops(a.exponent[i, first:last], exponent_b, c, room.top, room.scale)
    room.total[:] = 0
    for k in range(first, last, AT_A_TIME):
        end = min(k + AT_A_TIME, last)
        _add_terms(a.values[i, k:end], b.values[k:end], room.scale, room.part)
        for j in range(c.size):
            room.total[j] += room.part[j]
    return _round(c, room)


@njit(cache=True, nogil=True)
def chain_rows(
    first: int,
    last: int,
    of: tuple[Lanes, Lanes],
    terms: tuple[Terms, Terms],
    k_step: int,
    d: F32,
) -> None:
    """Do as `dot_unscaled_jit.chain_rows`; a step of all rows after the other."""
    a, b = of
    n, bits = d.shape[1], d.view(np.uint32)
    product_bits = terms[0].mantissa_bits + terms[1].mantissa_bits
    odd = np.nonzero(~b.plain)[0]
    room = Room(
        np.empty(n, np.int32),
        np.empty(n, np.float32),
        np.empty(n, np.int32),
        np.empty(n, np.float64),
        np.empty(n, np.float32),
        np.empty(n, np.bool_),
    )
    for step in range(0, a.values.shape[1], k_step):
        k = slice(step, step + k_step)
        for i in range(first, last):
            if not a.plain[i]:
                continue
            doubts = add_step(i, step, k_step, of, d[i], room)
            room.doubt[odd] = True
            if doubts or odd.size:
                for j in np.nonzero(room.doubt)[0]:
                    one = t_fdpa(
                        terms[0].significand[i, k],
                        terms[0].exponent[i, k],
                        terms[1].significand[j, k],
                        terms[1].exponent[j, k],
                        product_bits,
                        int(np.int64(bits[i, j])),
                    )
                    room.result.view(np.uint32)[j] = one
            d[i] = room.result
    for i in range(first, last):
        if not a.plain[i]:
            chain_row(i, terms[0], terms[1], k_step, bits)
