"""dot_unscaled_jit: the integer body of the MMAs without scales, compiled by Numba.

`t_fdpa` is the definition: one output element of one instruction, in int64. `chain_row`
feeds it along K; `chain_serial` and `chain_parallel` go over the rows. Each has a
``py_func`` that runs the same lines without the compiler.

Every step is an integer that fits int64:

* products: below 2^22 in units of their mantissa bits, relative to 2^exponent
* aligned terms: units of 2^-25 relative to 2^e_max, below 2^27; sums below 2^33

The model and its constants (25 bits, -133, truncation) are those of MMA-Sim (arXiv
2511.10909, package mmasim 2.1.1).
"""

from __future__ import annotations

from typing import Final

import numpy as np

from fp4ref.numerics.compiled import njit
from fp4ref.numerics.decoded_operands import INFINITE, Terms
from fp4ref.numerics.dot_jit import INF, NAN, round_toward_zero, truncate_shift
from fp4ref.numerics.formats import I64, U32

FRACTION_BITS: Final = 25  # kept below the largest exponent
E_ZERO: Final = -133  # the exponent with which a zero term takes part
SPECIAL: Final = INFINITE // 2  # exponents above it are those of Inf and NaN


@njit(cache=True)
def decode_c(c: int) -> tuple[int, int]:
    """Return significand, in units of 2^-23, and exponent of float32 bits."""
    field, fraction = (c >> 23) & 0xFF, c & 0x7FFFFF
    significand = fraction | 0x800000 if field > 0 else fraction
    exponent = max(field, 1) - 127
    if field == 0xFF:
        significand, exponent = int(fraction == 0), INFINITE
    return (-significand if c >> 31 else significand), exponent


@njit(cache=True)
def add_special(s_a: I64, e_a: I64, s_b: I64, e_b: I64, s_c: int, e_c: int) -> int:
    """Return D where a term is Inf or NaN; a product of Inf and zero is NaN."""
    plus, minus = e_c > SPECIAL and s_c > 0, e_c > SPECIAL and s_c < 0
    nan = e_c > SPECIAL and s_c == 0
    for k in range(s_a.size):
        if e_a[k] + e_b[k] > SPECIAL:
            product = s_a[k] * s_b[k]
            nan |= product == 0
            plus |= product > 0
            minus |= product < 0
    if nan or (plus and minus):
        return NAN
    return INF if plus else INF | 0x80000000


@njit(cache=True)
def t_fdpa(s_a: I64, e_a: I64, s_b: I64, e_b: I64, product_bits: int, c: int) -> int:
    """Return D, as float32 bits, of one output element of one instruction.

    Parameters
    ----------
    s_a, e_a, s_b, e_b : (K,)
        Significand and exponent of the elements.
    product_bits
        Mantissa bits of a product: those of A and B together.
    c
        float32 bits.
    """
    s_c, e_c = decode_c(c)

    # The exponents alone give a product its place; its significand is not normalised.
    e_max = e_c if s_c != 0 or e_c > SPECIAL else E_ZERO
    for k in range(s_a.size):
        e = e_a[k] + e_b[k]
        is_zero = s_a[k] * s_b[k] == 0 and e <= SPECIAL
        e_max = max(e_max, E_ZERO if is_zero else e)
    if e_max > SPECIAL:
        return add_special(s_a, e_a, s_b, e_b, s_c, e_c)

    # Each term is truncated on its own, the truncated terms are added exactly.
    total = truncate_shift(s_c << (FRACTION_BITS - 23), max(e_max - e_c, 0))
    for k in range(s_a.size):
        product = (s_a[k] * s_b[k]) << (FRACTION_BITS - product_bits)
        # Only a zero product can be above e_max.
        total += truncate_shift(product, max(e_max - e_a[k] - e_b[k], 0))
    return round_toward_zero(total, e_max - FRACTION_BITS)


@njit(cache=True)
def chain_row(i: int, a: Terms, b: Terms, k_step: int, d: U32) -> None:
    """Accumulate row `i` of D in place, one instruction after the other along K.

    Parameters
    ----------
    b
        Keeps its rows: (N, K).
    d : (M, N)
        float32 bits; C on entry.
    """
    product_bits = a.mantissa_bits + b.mantissa_bits
    for first in range(0, a.significand.shape[1], k_step):
        last = first + k_step
        s_a, e_a = a.significand[i, first:last], a.exponent[i, first:last]
        for j in range(d.shape[1]):
            d[i, j] = t_fdpa(
                s_a,
                e_a,
                b.significand[j, first:last],
                b.exponent[j, first:last],
                product_bits,
                int(np.int64(d[i, j])),  # uint32 in a signed expression becomes float64
            )


@njit(cache=True, nogil=True)
def chain_rows(first: int, last: int, a: Terms, b: Terms, k_step: int, d: U32) -> None:
    """Run `chain_row` over some rows; they are independent."""
    for i in range(first, last):
        chain_row(i, a, b, k_step, d)
