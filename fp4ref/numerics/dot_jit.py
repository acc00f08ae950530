"""dot_jit: the integer body of the block-scaled MMA, compiled by Numba.

`gst_fdpa` is the definition: one output element of one K=64 instruction, in int64.
`chain_row` feeds it along K for one row of the output; `chain_serial` and
`chain_parallel` go over the rows. Each has a ``py_func`` that runs the same lines
without the compiler. Importing this module imports Numba.

Units are chosen so that every step is an integer and fits int64:

* data: ``2 * value``, as E2M1 is a multiple of 1/2
* sums of 16 products: units of 2^-2, below 2^12
* scales: ``8 * significand`` and an exponent; a significand of -1 stands for NaN
* terms: units of 2^-8 relative to 2^exponent, below 2^20
* aligned terms: units of 2^-35 relative to 2^e_max, below 2^47

The model and its constants (16 products, 35 bits, -139, truncation) are those of
MMA-Sim (arXiv 2511.10909, package mmasim 2.1.1), whose authors report equality with
B200 silicon on random bits.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from fp4ref.numerics.compiled import njit
from fp4ref.numerics.decoded_operands import GROUP, Operand
from fp4ref.numerics.formats import I64, U32

GROUPS: Final = 4  # of one K=64 instruction
FRACTION_BITS: Final = 35  # kept below the largest exponent
E_ZERO: Final = -139  # the exponent with which a zero term takes part
NAN: Final = 0x7FFFFFFF
INF: Final = 0x7F800000

Four = tuple[int, int, int, int]


@njit(cache=True)
def truncate_shift(x: int, distance: int) -> int:
    """Return ``x * 2^-distance`` truncated toward zero."""
    magnitude = abs(x) >> min(distance, 63)
    return magnitude if x >= 0 else -magnitude


@njit(cache=True)
def round_toward_zero(total: int, exponent: int) -> int:
    """Return the float32 bits of ``total * 2^exponent``, RZ; Inf from 2^128 up."""
    magnitude = abs(total)
    # Below 2^53 the float64 is exact, and its exponent field is the bit length.
    highest_bit = int(np.float64(magnitude).view(np.int64) >> 52) - 1023
    value_exponent = highest_bit + exponent
    kept_exponent = max(value_exponent, -126)  # subnormals share the lowest one
    drop = kept_exponent - 23 - exponent
    significand = (magnitude << min(max(-drop, 0), 63)) >> min(max(drop, 0), 63)
    # The leading bit of a normal significand adds the 1 missing in the field.
    bits = ((kept_exponent + 126) << 23) + significand
    bits = INF if value_exponent > 127 else bits
    # A negative value that truncates to zero gives +0.
    return bits | 0x80000000 if total < 0 and bits != 0 else bits


@njit(cache=True)
def gst_fdpa(
    sums: Four,
    live_a: Four,
    s_a: Four,
    e_a: Four,
    live_b: Four,
    s_b: Four,
    e_b: Four,
    c: int,
) -> int:
    """Return D, as float32 bits, of one output element of one K=64 instruction.

    Parameters
    ----------
    sums
        Exact sum of the 16 products of each group.
    live_a, live_b
        Bit masks of the elements that are not zero. Products that cancel are not
        zero products.
    s_a, e_a, s_b, e_b
        The two scales of each group: significand and exponent.
    c
        float32 bits.
    """
    field, fraction = (c >> 23) & 0xFF, c & 0x7FFFFF
    s_c = fraction | 0x800000 if field > 0 else fraction
    e_c = max(field, 1) - 127 if s_c != 0 else E_ZERO
    s_c = -s_c if c >> 31 else s_c

    # The scales alone give a group its exponent; its sum is not normalised.
    e_max = e_c
    is_nan = field == 0xFF and fraction != 0
    for g in range(GROUPS):
        is_zero = live_a[g] & live_b[g] == 0 or s_a[g] * s_b[g] == 0
        e_max = max(e_max, E_ZERO if is_zero else e_a[g] + e_b[g])
        is_nan |= s_a[g] < 0 or s_b[g] < 0

    # Each term is truncated on its own, the truncated terms are added exactly.
    total = truncate_shift(s_c << (FRACTION_BITS - 23), e_max - e_c)
    for g in range(GROUPS):
        term = sums[g] * s_a[g] * s_b[g]
        e_term = min(e_a[g] + e_b[g], e_max)  # only a zero term can be above e_max
        total += truncate_shift(term << (FRACTION_BITS - 8), e_max - e_term)

    d = round_toward_zero(total, e_max - FRACTION_BITS)
    d = c if field == 0xFF else d
    return NAN if is_nan else d


@njit(cache=True)
def row_groups(values: I64, i: int, first: int) -> Four:
    """Return the entries of the four groups of one instruction, row `i` of A."""
    return (
        values[i, first],
        values[i, first + 1],
        values[i, first + 2],
        values[i, first + 3],
    )


@njit(cache=True)
def column_groups(values: I64, first: int, j: int) -> Four:
    """Return the entries of the four groups of one instruction, column `j` of B."""
    return (
        values[first, j],
        values[first + 1, j],
        values[first + 2, j],
        values[first + 3, j],
    )


@njit(cache=True)
def chain_row(i: int, a: Operand, b: Operand, d: U32) -> None:
    """Accumulate row `i` of D in place, one instruction after the other along K.

    D of one instruction is C of the next, so the result is truncated once per 64.

    Parameters
    ----------
    d : (M, N)
        float32 bits; C on entry.
    """
    n = d.shape[1]
    # Column loops are innermost, so that the compiler turns them into SIMD code.
    sums = np.empty((GROUPS, n), np.int64)
    products = np.empty(n, np.int16)
    for first in range(0, a.live.shape[1], GROUPS):
        for g in range(GROUPS):
            products[:] = 0
            for k in range(GROUP * (first + g), GROUP * (first + g + 1)):
                a_ik = np.int16(a.halves[i, k])
                for j in range(n):
                    products[j] += a_ik * np.int16(b.halves[k, j])
            for j in range(n):
                sums[g, j] = products[j]
        live_a = row_groups(a.live, i, first)
        s_a = row_groups(a.significand, i, first)
        e_a = row_groups(a.exponent, i, first)
        for j in range(n):
            c = int(np.int64(d[i, j]))  # uint32 in a signed expression becomes float64
            d[i, j] = gst_fdpa(
                column_groups(sums, 0, j),
                live_a,
                s_a,
                e_a,
                column_groups(b.live, first, j),
                column_groups(b.significand, first, j),
                column_groups(b.exponent, first, j),
                c,
            )


@njit(cache=True)
def single_outputs(
    a: Operand, b: Operand, rows: I64, columns: I64, first: int, d: U32
) -> None:
    """Compute single outputs of the instruction that starts at group `first`.

    Parameters
    ----------
    rows, columns, d : (count,)
        `d` holds C on entry.
    """
    for at in range(rows.size):
        i, j = rows[at], columns[at]
        sums = np.zeros(GROUPS, np.int64)
        for g in range(GROUPS):
            for k in range(GROUP * (first + g), GROUP * (first + g + 1)):
                sums[g] += np.int64(a.halves[i, k]) * np.int64(b.halves[k, j])
        d[at] = gst_fdpa(
            (sums[0], sums[1], sums[2], sums[3]),
            row_groups(a.live, i, first),
            row_groups(a.significand, i, first),
            row_groups(a.exponent, i, first),
            column_groups(b.live, first, j),
            column_groups(b.significand, first, j),
            column_groups(b.exponent, first, j),
            int(np.int64(d[at])),
        )


@njit(cache=True, nogil=True)
def chain_rows(first: int, last: int, a: Operand, b: Operand, d: U32) -> None:
    """Run `chain_row` over some rows; they are independent."""
    for i in range(first, last):
        chain_row(i, a, b, d)
