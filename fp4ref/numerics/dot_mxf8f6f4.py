"""dot_mxf8f6f4: the matrix product with the bits of the tcgen05 MX FP8/FP6/FP4 MMA.

One instruction multiplies 32 elements along K, which share one UE8M0 scale in A and one
in B. A scale is a power of two, so it only moves the exponents of its 32 elements: the
arithmetic is that of `dot_unscaled_jit`, in which each product keeps the exponent that
its elements and their scales give it.

NVIDIA does not document this arithmetic. The model is that of MMA-Sim (arXiv
2511.10909, package mmasim 2.1.1); it has not been measured here on a Blackwell card.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from fp4ref.errors import InputError
from fp4ref.numerics.decoded_operands import INFINITE, Terms, decode_terms
from fp4ref.numerics.dot_unscaled import checked_codes, multiply_terms
from fp4ref.numerics.elements import ElementFormat, ScaleFormat, require_element_format
from fp4ref.numerics.formats import F32, U8, require_codes

VEC_SIZE: Final = 32  # elements that share a scale, and K of one instruction


def matmul_mxf8f6f4(
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    sfa: npt.ArrayLike,
    sfb: npt.ArrayLike,
    c: npt.ArrayLike | None = None,
    *,
    a_format: ElementFormat,
    b_format: ElementFormat,
) -> F32:
    """Return ``A B^T + C`` as a chain of K=32 instructions computes it.

    PTX: ``tcgen05.mma.kind::mxf8f6f4.block_scale``.

    Parameters
    ----------
    a : (M, K)
        One code per element, in its low bits; K is a multiple of 32.
    b : (N, K)
    sfa : (M, K / 32)
        UE8M0 codes.
    sfb : (N, K / 32)
    c : (M, N), float32
        Enters the first instruction. None stands for +0.

    Returns
    -------
    (M, N)
        As `matmul_unscaled`; a NaN scale makes NaN of a block of zeros too.

    Raises
    ------
    InputError
        A shape, a type, a code or a format is not legal.
    """
    terms = [
        scaled_terms(*operand)
        for operand in (("a", a, sfa, a_format), ("b", b, sfb, b_format))
    ]
    return multiply_terms(terms[0], terms[1], VEC_SIZE, c)


def scaled_terms(
    name: str, codes: npt.ArrayLike, scales: npt.ArrayLike, element: ElementFormat
) -> Terms:
    """Return an operand whose exponents hold those of its scales."""
    require_element_format(element, f"mma {name}_format")
    if element.bits > 8:
        raise InputError(
            f"mma {name}_format: {element.name}; kind::mxf8f6f4 takes elements of 8, 6 "
            "and 4 bits"
        )
    data = checked_codes(name, codes, element)
    scale_codes = _checked_scales(name, scales, data.shape)
    terms = decode_terms(data, element.element)
    scale = ScaleFormat.UE8M0.element.split(scale_codes)
    moved = terms.exponent + np.repeat(scale.exponent, VEC_SIZE, axis=1)
    nan = np.repeat(scale.nan, VEC_SIZE, axis=1)
    return Terms(
        np.where(nan, 0, terms.significand),
        np.where(nan, INFINITE, moved),
        terms.mantissa_bits,
    )


def _checked_scales(name: str, scales: npt.ArrayLike, shape: tuple[int, ...]) -> U8:
    codes = require_codes(scales, f"mma sf{name}")
    expected = (shape[0], shape[1] // VEC_SIZE)
    if codes.shape != expected:
        raise InputError(
            f"mma sf{name}: shape {codes.shape}; need {expected}, one scale per "
            f"{VEC_SIZE} elements of {name}. Undo the tiled scale layout first"
        )
    return codes
