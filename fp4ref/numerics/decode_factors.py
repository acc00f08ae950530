"""decode_factors: codes and scales to `factors`, by NumPy or Numba.

`decode_factors_jit` has the same loops for Numba; they are taken where it can be
imported.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Final

import numpy as np

from fp4ref.numerics.decoded_operands import K_STEP
from fp4ref.numerics.element import Element
from fp4ref.numerics.elements import ElementFormat
from fp4ref.numerics.factors import MOST_BINADES, NONE, Codes, E2M1Table, Factors, Table
from fp4ref.numerics.formats import U8


@lru_cache(maxsize=64)
def table(element: Element, aligned: bool) -> Table:
    """Return what the codes of a format are.

    Parameters
    ----------
    aligned
        Whether its exponent is one that the MMA aligns by. Those of the elements of
        ``kind::mxf4nvf4`` are not: only the scales' are.
    """
    parts = element.split(np.arange(1 << max(element.bits, 8)))
    special = parts.nan * 2 + parts.inf
    significand = np.where(special > 0, 0, parts.significand)
    live = significand != 0
    lowest = significand & -significand
    zeros = np.where(live, np.log2(np.maximum(lowest, 1)).astype(np.int64), 0)
    signed = np.where(parts.negative, -significand, significand).astype(np.float64)
    place = parts.exponent - element.mantissa_bits
    return Table(
        np.ldexp(signed, np.where(live, place, 0)),
        np.where(live, place + zeros, NONE),
        np.where(live, parts.exponent if aligned else 0, -NONE),
        special.astype(np.uint8),
    )


_ONE: Final = Table(
    np.ones(1), np.zeros(1, np.int64), np.zeros(1, np.int64), np.zeros(1, np.uint8)
)
"""The scale of a format without scales."""


@cache
def _of_e2m1() -> E2M1Table:
    lowest = [(some & -some).bit_length() - 2 for some in range(16)]
    values = 2 * ElementFormat.E2M1.element.decode(np.arange(16, dtype=np.uint8))
    halves = np.abs(values).astype(np.int32)
    return E2M1Table(
        np.array([NONE, *lowest[1:]], np.int64),
        halves << 16 | halves * halves,
        values.astype(np.float32) + np.float32(0),
    )


def decode_factors(
    codes: Codes,
    element: Element,
    step: int,
    scales: U8 | None = None,
    scale: Element | None = None,
) -> Factors:
    """Decode one operand.

    Parameters
    ----------
    codes : (rows, K)
        K is a multiple of `step`.
    element
        Format of the codes.
    step
        K of one instruction.
    scales : (rows, K / vec), optional
        Codes of the format `scale`; a block of `vec` lies in one step.
    """
    from fp4ref.numerics import compiled

    rows, k = codes.shape
    of_elements = table(element, aligned=step != K_STEP)
    of_scales = _ONE if scale is None else table(scale, True)
    if scales is None:
        scales = np.zeros((rows, k // step), np.uint8)
    factors = Factors(
        np.empty((rows, k), np.float32),
        np.zeros(rows, np.int64),
        np.full((rows, k // step), NONE),
        np.full((rows, k // step), -NONE),
        np.zeros((rows, k // step)),
        np.zeros(rows, np.bool_),
        np.zeros(rows, np.bool_),
    )
    if not compiled.AVAILABLE:
        _decode(codes, scales, of_elements, of_scales, factors)
        return factors
    from fp4ref.numerics import decode_factors_jit as jit

    codes, scales = compiled.read_only(codes), compiled.read_only(scales)
    least = compiled.PASS // max(k, 1)
    if element.name == "e2m1" and step == K_STEP and scale is not None:
        arguments = codes, scales, _of_e2m1(), of_scales, factors
        compiled.in_pieces(jit.decode_e2m1, rows, least, *arguments)
    else:
        both = codes, scales, of_elements, of_scales, factors
        compiled.in_pieces(jit.decode, rows, least, *both)
    return factors


def _decode(
    codes: Codes, scales: U8, element: Table, scale: Table, out: Factors
) -> None:
    """Fill `out`; what `decode_factors_jit` compiles, by NumPy."""
    rows, steps = out.unit.shape
    blocks = codes.reshape(rows, scales.shape[1], -1)
    live = element.unit[blocks] < NONE
    live &= (scale.unit[scales] < NONE)[..., np.newaxis]
    s_unit, s_top = scale.unit[scales], scale.top[scales]
    unit = np.where(live, element.unit[blocks] + s_unit[..., np.newaxis], NONE)
    top = np.where(live, element.top[blocks] + s_top[..., np.newaxis], -NONE)
    out.unit[:] = unit.reshape(rows, steps, -1).min(axis=2)
    out.top[:] = top.reshape(rows, steps, -1).max(axis=2)
    element_special = element.special[blocks].reshape(rows, -1)
    scale_special = scale.special[scales]
    out.nan[:] = (element_special == 2).any(axis=1) | (scale_special == 2).any(axis=1)
    lowest, highest = out.unit.min(axis=1), out.top.max(axis=1)
    out.base[:] = np.where(lowest < NONE, lowest, 0)
    wide = highest - out.base > MOST_BINADES
    out.apart[:] = (wide | (element_special == 1).any(axis=1)) & ~out.nan
    keep = ~(out.nan | out.apart)
    factor = np.ldexp(scale.value[scales], -out.base[:, np.newaxis])
    factor = np.where(keep[:, np.newaxis], factor, 0)
    values = element.value[blocks] * factor[..., np.newaxis]
    out.values[:] = values.reshape(rows, -1)
    out.square[:] = (values * values).reshape(rows, steps, -1).sum(axis=2)
