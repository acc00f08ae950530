"""narrow_operands: A or B of any operand format, on which a wrong accumulator shows.

Codes are drawn evenly, so that the values spread over all that the format has; scales
spread too. There are zeros of both signs, slabs that cancel, and in the last of three
rows a NaN scale, or elements that are NaN or infinite.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from fp4ref import BlockScaled
from fp4ref.numerics.elements import BLOCKS, ELEMENTS, Element, element

SPREAD = 20
"""Binades above and below 1 of 16-bit values and of scales."""


def narrow(
    seed: int, shape: tuple[int, ...], format: str, *, specials: bool = True
) -> BlockScaled | NDArray[Any]:
    """Return an operand (..., rows, K) of a format."""
    rng = np.random.default_rng([seed, *shape, len(format)])
    of = element(format)
    codes = _finite_codes(rng, shape, of)
    half = codes[..., 16 : shape[-1] // 2 * 2 : 64].shape[-1]
    codes[..., 16::64][..., :half] = codes[..., 0::64][..., :half] ^ of.sign
    codes[rng.random(shape) < 1 / 16] &= of.sign
    last = specials and shape[-2] >= 3
    if format not in BLOCKS:
        if last and of.top != "numbers":
            codes[..., -1, rng.integers(shape[-1])] = of.nan_code
        if last and of.top == "Inf and NaN":
            inf = ((1 << of.exponent_bits) - 1) << of.mantissa_bits
            codes[..., -2, rng.integers(shape[-1])] = inf
        return codes.view(getattr(ml_dtypes, of.dtype or "", of.dtype))
    vec = BLOCKS[format].vec_size
    around = 127 + np.array([-SPREAD, SPREAD + 1])
    scales = rng.integers(*around, (*shape[:-1], shape[-1] // vec), np.uint8)
    if last:
        scales[..., -1, -1] = 0xFF
    return BlockScaled(codes, scales, format, "ue8m0")


def _finite_codes(
    rng: np.random.Generator, shape: tuple[int, ...], of: Element
) -> NDArray[Any]:
    """Codes of numbers; those of 16 bits stay around 1."""
    if of.bits == 16:
        spread = min(SPREAD, of.bias - 1)
        x = rng.standard_normal(shape) * np.exp2(rng.integers(-spread, spread, shape))
        clipped = np.clip(x, -of.largest, of.largest)
        name = of.dtype or ""
        return clipped.astype(getattr(ml_dtypes, name, name)).view(np.uint16)
    codes = rng.integers(0, 1 << of.bits, shape, np.uint8)
    parts = ELEMENTS[of.name].split(codes)
    return np.where(parts.nan | parts.inf, codes & of.sign, codes).astype(np.uint8)
