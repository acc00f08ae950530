"""decoded_operands: A and B of an MMA in integers, as its arithmetic takes them.

`decode_a` and `decode_b` are for the block-scaled MMA, `decode_terms` for the others.
"""

from __future__ import annotations

from functools import cache
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from fp4ref.arguments import require_integer
from fp4ref.errors import InputError
from fp4ref.numerics.element import Element
from fp4ref.numerics.elements import (
    ScaleFormat,
    legal_scale_formats,
    require_scale_format,
)
from fp4ref.numerics.formats import I64, U8, decode_e2m1, require_codes

GROUP: Final = 16  # products summed before scaling, also with 32-element scales
K_STEP: Final = 64  # K of one block-scaled instruction

INFINITE: Final = 1 << 12
"""Exponent that stands for Inf and, with a significand of 0, for NaN."""

I8 = npt.NDArray[np.int8]


class Operand(NamedTuple):
    """A or B in integers, with one scale for every group of 16 elements.

    A keeps its rows, B is transposed: ``(M, K)`` and ``(K, N)`` for `halves`,
    ``(M, K / 16)`` and ``(K / 16, N)`` for the rest. All are C-contiguous.

    Attributes
    ----------
    halves
        Twice the value of each element.
    live
        Bit k of a group is set where its element k is not zero.
    significand
        Of the scale, times 8; -1 stands for NaN.
    exponent
        Of the scale.
    """

    halves: I8
    live: I64
    significand: I64
    exponent: I64


@cache
def scale_table(scale_format: ScaleFormat) -> tuple[I64, I64]:
    """Return the significand in eighths, and the exponent, of all 256 codes."""
    scale = scale_format.element
    parts = scale.split(np.arange(256))
    eighths = parts.significand << 3 - scale.mantissa_bits
    return np.where(parts.nan, -1, eighths), parts.exponent


_E2M1_HALVES: Final = (2 * decode_e2m1(np.arange(16, dtype=np.uint8))).astype(np.int8)


def decode_a(
    a: npt.ArrayLike,
    sfa: npt.ArrayLike,
    *,
    scale_format: ScaleFormat,
    vec_size: int,
) -> Operand:
    """Decode A for `mma_decoded`, padding K to whole instructions.

    The padding is code 0 with scale code 0: a zero term, whatever the format.

    Parameters
    ----------
    a : (M, K)
        E2M1 codes, one per byte.
    sfa : (M, K / vec_size)
        Scale codes.

    Raises
    ------
    InputError
        A shape, a code, or the pair of `scale_format` and `vec_size` is not legal.
    """
    return _decode_rows("a", a, sfa, scale_format, vec_size)


def decode_b(
    b: npt.ArrayLike,
    sfb: npt.ArrayLike,
    *,
    scale_format: ScaleFormat,
    vec_size: int,
) -> Operand:
    """Decode B for `mma_decoded`, padding K to whole instructions.

    Parameters
    ----------
    b : (N, K)
        E2M1 codes, one per byte.
    sfb : (N, K / vec_size)
        Scale codes.

    Raises
    ------
    InputError
        A shape, a code, or the pair of `scale_format` and `vec_size` is not legal.
    """
    rows = _decode_rows("b", b, sfb, scale_format, vec_size)
    return Operand(
        np.ascontiguousarray(rows.halves.T),
        np.ascontiguousarray(rows.live.T),
        np.ascontiguousarray(rows.significand.T),
        np.ascontiguousarray(rows.exponent.T),
    )


def _decode_rows(
    name: str,
    codes: npt.ArrayLike,
    scales: npt.ArrayLike,
    scale_format: ScaleFormat,
    vec_size: int,
) -> Operand:
    data, scale_codes = _checked_operand(name, codes, scales, scale_format, vec_size)
    if pad := -data.shape[1] % K_STEP:
        data = np.pad(data, ((0, 0), (0, pad)))
        scale_codes = np.pad(scale_codes, ((0, 0), (0, pad // vec_size)))
    if vec_size != GROUP:
        scale_codes = np.repeat(scale_codes, vec_size // GROUP, axis=1)
    halves = np.take(_E2M1_HALVES, data)
    live = np.packbits(halves != 0, axis=1).view(np.uint16).astype(np.int64)
    significand, exponent = scale_table(scale_format)
    return Operand(
        halves, live, np.take(significand, scale_codes), np.take(exponent, scale_codes)
    )


def _checked_operand(
    name: str,
    codes: npt.ArrayLike,
    scales: npt.ArrayLike,
    scale_format: ScaleFormat,
    vec_size: int,
) -> tuple[U8, U8]:
    require_scale_format(scale_format, "mma")
    vec_size = require_integer(vec_size, "mma vec_size")
    if scale_format not in legal_scale_formats(vec_size):
        raise InputError(
            f"mma vec_size: {vec_size!r} with {scale_format.name} scales; "
            "kind::mxf4nvf4 takes UE4M3 with 16, UE8M0 with 16 or 32. "
            "Requantise to one of these"
        )
    data = require_codes(codes, f"mma {name}", highest=0xF)
    scale_codes = require_codes(scales, f"mma sf{name}")
    if data.ndim != 2 or data.shape[1] == 0 or data.shape[1] % vec_size:
        raise InputError(
            f"mma {name}: shape {data.shape}; need (rows, K) with K a positive "
            f"multiple of vec_size {vec_size}. Pad K with code 0 and scale code 0"
        )
    expected = (data.shape[0], data.shape[1] // vec_size)
    if scale_codes.shape != expected:
        raise InputError(
            f"mma sf{name}: shape {scale_codes.shape}; need {expected}, one scale "
            f"per {vec_size} elements of {name}. Undo the tiled scale layout first"
        )
    return data, scale_codes


class Terms(NamedTuple):
    """A or B in integers: element = significand * 2^(exponent - mantissa_bits).

    Attributes
    ----------
    significand, exponent : (rows, K)
        A subnormal keeps the lowest exponent. Inf is +1 or -1, and NaN 0, with the
        exponent `INFINITE`.
    """

    significand: I64
    exponent: I64
    mantissa_bits: int


def decode_terms(codes: npt.NDArray[np.integer], element: Element) -> Terms:
    """Split codes into significand and exponent, of the bits that an MMA takes."""
    taken = element.taken_mantissa_bits
    dropped = 0 if taken is None else element.mantissa_bits - taken
    parts = element.split(codes >> dropped << dropped if dropped else codes)
    significand = parts.significand >> dropped
    magnitude = np.where(parts.nan, 0, np.where(parts.inf, 1, significand))
    return Terms(
        np.where(parts.negative, -magnitude, magnitude),
        np.where(parts.nan | parts.inf, INFINITE, parts.exponent),
        element.mantissa_bits - dropped,
    )
