"""dot_unscaled_f16: the tcgen05 FP16 and FP8 MMAs with D in FP16.

The sum is that of `dot_unscaled`: each product and C is truncated on its own, 25 bits
below the largest exponent. The sum is then rounded to FP16, to nearest and ties to
even. Arrays of NumPy do it; nothing of it is compiled.

NVIDIA does not document this arithmetic. The model is that of MMA-Sim (arXiv
2511.10909); it has not been measured here on a Blackwell card.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from fp4ref.errors import InputError
from fp4ref.numerics.decoded_operands import INFINITE, Terms, decode_terms
from fp4ref.numerics.dot_unscaled import check_formats, checked_codes
from fp4ref.numerics.dot_unscaled_jit import E_ZERO, FRACTION_BITS, SPECIAL
from fp4ref.numerics.elements import ElementFormat
from fp4ref.numerics.formats import I64

F16 = npt.NDArray[np.float16]

NAN: Final = np.uint16(0x7FFF)
_MOST_SHIFT: Final = 62
_BLOCK: Final = 1 << 20
"""Products that are held at a time."""


def matmul_unscaled_f16(
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    c: F16 | None = None,
    *,
    a_format: ElementFormat,
    b_format: ElementFormat,
) -> F16:
    """Return ``A B^T + C`` as one instruction computes it with D in FP16.

    PTX: ``tcgen05.mma`` of ``kind::f16`` with A and B in f16, and of
    ``kind::f8f6f4``.

    Parameters
    ----------
    a : (M, K)
        One code per element, in its low bits; K is the formats' `k_step`.
    b : (N, K)
    c : (M, N), float16
        None stands for +0.

    Returns
    -------
    (M, N)
        Never -0. NaN is 0x7FFF. A sum of 65520 or more is Inf.

    Raises
    ------
    InputError
        A shape, a type or a code is not legal, or the formats do not go together.
    """
    check_formats(a_format, b_format)
    if a_format.bits > 8 and a_format is not ElementFormat.F16:
        raise InputError(
            f"mma a_format: {a_format.name} with D in float16; kind::f16 takes f16 "
            "then. Use D in float32"
        )
    codes = checked_codes("a", a, a_format), checked_codes("b", b, b_format)
    if codes[0].shape[1] != a_format.k_step or codes[1].shape[1] != a_format.k_step:
        raise InputError(
            f"mma a, b: K is {codes[0].shape[1]} and {codes[1].shape[1]}; one "
            f"instruction takes {a_format.k_step}"
        )
    terms_a = decode_terms(codes[0], a_format.element)
    terms_b = decode_terms(codes[1], b_format.element)
    shape = len(codes[0]), len(codes[1])
    start = np.zeros(shape, np.float16) if c is None else c
    if start.shape != shape or start.dtype != np.float16:
        raise InputError(f"mma c: {start.dtype} {start.shape}; need float16 {shape}")
    return rounded_sums(terms_a, terms_b, start)


def rounded_sums(terms_a: Terms, terms_b: Terms, start: F16) -> F16:
    """Return ``A B^T + C`` of decoded operands in one step, whatever K is.

    Parameters
    ----------
    terms_a : (M, K)
    terms_b : (N, K)
    start : (M, N)
        C.
    """
    shape = start.shape
    rows = max(1, _BLOCK // (shape[1] * terms_a.significand.shape[1]))
    found = np.empty(shape, np.float16)
    for first in range(0, shape[0], rows):
        some = slice(first, first + rows)
        part = Terms(
            terms_a.significand[some], terms_a.exponent[some], terms_a.mantissa_bits
        )
        found[some] = _rounded_sum(part, terms_b, start[some])
    return found


def _rounded_sum(a: Terms, b: Terms, c: F16) -> F16:
    """Return the sums of some rows."""
    product = a.significand[:, None, :] * b.significand[None, :, :]
    exponent = a.exponent[:, None, :] + b.exponent[None, :, :]
    special = exponent > SPECIAL
    placed = np.where((product == 0) & ~special, E_ZERO, exponent)
    s_c, e_c = _split(c)
    special_c = e_c > SPECIAL
    largest = np.maximum(
        placed.max(axis=2), np.where((s_c != 0) | special_c, e_c, E_ZERO)
    )
    bits = a.mantissa_bits + b.mantissa_bits
    aligned = _truncated(
        product << (FRACTION_BITS - bits), largest[..., None] - exponent
    )
    total = aligned.sum(axis=2) + _truncated(s_c << (FRACTION_BITS - 10), largest - e_c)
    # A sum has 33 bits: float64 holds it, and rounds it to float16 once.
    with np.errstate(over="ignore", under="ignore"):
        exact = np.ldexp(total.astype(np.float64), largest - FRACTION_BITS)
        found: F16 = np.where(special.any(axis=2) | special_c, 0, exact).astype("f2")
    found += np.float16(0)  # -0 becomes +0
    plus = (special & (product > 0)).any(axis=2) | special_c & (s_c > 0)
    minus = (special & (product < 0)).any(axis=2) | special_c & (s_c < 0)
    nan = (special & (product == 0)).any(axis=2) | special_c & (s_c == 0)
    found[plus], found[minus] = np.inf, -np.inf
    found.view(np.uint16)[nan | plus & minus] = NAN
    return found


def _split(c: F16) -> tuple[I64, I64]:
    """Return significand, in units of 2^-10, and exponent of float16 values."""
    codes = c.view(np.uint16).astype(np.int64)
    field, fraction = codes >> 10 & 0x1F, codes & 0x3FF
    magnitude = np.where(field > 0, fraction | 0x400, fraction)
    magnitude = np.where(field == 0x1F, fraction == 0, magnitude)
    exponent = np.where(field == 0x1F, INFINITE, np.maximum(field, 1) - 15)
    return np.where(codes >> 15, -magnitude, magnitude), exponent


def _truncated(value: I64, shift: I64) -> I64:
    """Shift to the right toward zero."""
    magnitude = np.abs(value) >> np.clip(shift, 0, _MOST_SHIFT)
    return np.where(value < 0, -magnitude, magnitude)
