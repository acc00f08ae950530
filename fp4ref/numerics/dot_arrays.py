"""dot_arrays: the integer bodies of the MMAs on whole arrays, by NumPy.

The definitions are `dot_jit.gst_fdpa` and `dot_unscaled_jit.t_fdpa`, one output at a
time. Here each integer is an array of outputs, so no compiler is needed; the chains
stand in for theirs where Numba is absent.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from fp4ref.numerics import dot_jit
from fp4ref.numerics.decoded_operands import GROUP, Operand, Terms
from fp4ref.numerics.dot_jit import GROUPS, INF, NAN
from fp4ref.numerics.dot_unscaled_jit import E_ZERO, FRACTION_BITS, SPECIAL
from fp4ref.numerics.formats import I64, U32

Bools = npt.NDArray[np.bool_]


def truncate_shift(x: I64, distance: I64) -> I64:
    """Return ``x * 2^-distance`` truncated toward zero."""
    magnitude = np.abs(x) >> np.minimum(distance, 63)
    return np.where(x >= 0, magnitude, -magnitude)


def round_toward_zero(total: I64, exponent: I64) -> I64:
    """Return the float32 bits of ``total * 2^exponent``, RZ; Inf from 2^128 up."""
    magnitude = np.abs(total)
    highest_bit = (magnitude.astype(np.float64).view(np.int64) >> 52) - 1023
    value_exponent = highest_bit + exponent
    kept_exponent = np.maximum(value_exponent, -126)
    drop = kept_exponent - 23 - exponent
    up, down = np.clip(-drop, 0, 63), np.clip(drop, 0, 63)
    bits = (kept_exponent + 126 << 23) + ((magnitude << up) >> down)
    bits = np.where(value_exponent > 127, INF, bits)
    return np.where((total < 0) & (bits != 0), bits | 0x80000000, bits)


def split_c(c: I64, e_zero: int) -> tuple[I64, I64]:
    """Return significand, in units of 2^-23, and exponent of finite float32 bits."""
    field, fraction = (c >> 23) & 0xFF, c & 0x7FFFFF
    significand = np.where(field > 0, fraction | 0x800000, fraction)
    exponent = np.where(significand != 0, np.maximum(field, 1) - 127, e_zero)
    return np.where(c >> 31 != 0, -significand, significand), exponent


def gst_fdpa(
    sums: list[I64], zero: list[Bools], scale: list[I64], exponent: list[I64], c: I64
) -> I64:
    """Return D, as float32 bits, of outputs of one K=64 instruction.

    Parameters
    ----------
    sums, zero, scale, exponent
        Of each of the four groups: the sum of its products, whether all of them are
        zero, and of its two scales the product of the significands (negative for NaN)
        and the sum of the exponents.
    c
        float32 bits.
    """
    field = (c >> 23) & 0xFF
    s_c, e_c = split_c(c, dot_jit.E_ZERO)
    e_max = e_c
    nan = (field == 0xFF) & (c & 0x7FFFFF != 0)
    for g in range(GROUPS):
        dead = zero[g] | (scale[g] == 0)
        e_max = np.maximum(e_max, np.where(dead, dot_jit.E_ZERO, exponent[g]))
        nan = nan | (scale[g] < 0)
    total = truncate_shift(s_c << dot_jit.FRACTION_BITS - 23, e_max - e_c)
    for g in range(GROUPS):
        term = sums[g] * scale[g] << dot_jit.FRACTION_BITS - 8
        total = total + truncate_shift(term, e_max - np.minimum(exponent[g], e_max))
    d = round_toward_zero(total, e_max - dot_jit.FRACTION_BITS)
    return np.where(nan, NAN, np.where(field == 0xFF, c, d))


def scale_product(s_a: I64, s_b: I64) -> I64:
    """Return the product of two significands of scales; -1 if one of them is NaN."""
    return np.where((s_a < 0) | (s_b < 0), -1, s_a * s_b)


def chain_block_scaled(a: Operand, b: Operand, d: U32) -> None:
    """Accumulate D in place, one K=64 instruction after the other; as `dot_jit`."""
    c = d.astype(np.int64)
    for first in range(0, a.live.shape[1], GROUPS):
        sums, zero, scale, exponent = [], [], [], []
        for g in range(first, first + GROUPS):
            k = slice(GROUP * g, GROUP * (g + 1))
            halves_a, halves_b = a.halves[:, k], b.halves[k]
            product = halves_a.astype(np.float32) @ halves_b.astype(np.float32)
            sums.append(product.astype(np.int64))
            zero.append(a.live[:, g, np.newaxis] & b.live[g] == 0)
            s_a, e_a = a.significand[:, g, np.newaxis], a.exponent[:, g, np.newaxis]
            scale.append(scale_product(s_a, b.significand[g]))
            exponent.append(e_a + b.exponent[g])
        c = gst_fdpa(sums, zero, scale, exponent, c)
    d[:] = c.astype(np.uint32)


def t_fdpa(products: Iterable[tuple[I64, I64]], product_bits: int, c: I64) -> I64:
    """Return D, as float32 bits, of outputs of one instruction without block scales.

    Parameters
    ----------
    products
        Significand and exponent of each product along K; read twice.
    product_bits
        Mantissa bits of a product.
    c
        float32 bits.
    """
    terms = list(products)
    field = (c >> 23) & 0xFF
    s_c, e_c = split_c(c, E_ZERO)
    special_c = field == 0xFF
    e_max = e_c
    nan = special_c & (c & 0x7FFFFF != 0)
    plus = special_c & ~nan & (c >> 31 == 0)
    minus = special_c & ~nan & (c >> 31 != 0)
    for s, e in terms:
        special = e > SPECIAL
        nan = nan | special & (s == 0)
        plus, minus = plus | special & (s > 0), minus | special & (s < 0)
        e_max = np.maximum(e_max, np.where(special | (s == 0), E_ZERO, e))
    total = truncate_shift(s_c << FRACTION_BITS - 23, np.maximum(e_max - e_c, 0))
    for s, e in terms:
        product = s << FRACTION_BITS - product_bits
        total = total + truncate_shift(product, np.maximum(e_max - e, 0))
    d = round_toward_zero(total, e_max - FRACTION_BITS)
    d = np.where(minus, INF | 0x80000000, np.where(plus, INF, d))
    return np.where(nan | (plus & minus), NAN, d)


def chain_unscaled(a: Terms, b: Terms, k_step: int, d: U32) -> None:
    """Accumulate D in place, one instruction after the other; as `dot_unscaled_jit`."""
    product_bits = a.mantissa_bits + b.mantissa_bits
    s_a, e_a, s_b, e_b = a.significand, a.exponent, b.significand.T, b.exponent.T
    c = d.astype(np.int64)
    for first in range(0, s_a.shape[1], k_step):
        steps = range(first, first + k_step)
        products = (
            (s_a[:, k, np.newaxis] * s_b[k], e_a[:, k, np.newaxis] + e_b[k])
            for k in steps
        )
        c = t_fdpa(products, product_bits, c)
    d[:] = c.astype(np.uint32)
