"""mx: four ways to choose a power of two for a block.

    floor   largest power of two in amax, over that of the element (OCP MX 6.3)
    even    the same, after amax was rounded to the element's mantissa
    ceil    the next power of two above amax, over that of the element
    rceil   amax / largest element, rounded up to a power of two (cuBLAS)

For amax between 6 and 8 times a power of two, floor clips to 6. NaN and Inf give the
scale NaN, and so does what even rounds up to 2^128. A block of zeros has the scale
0x00, which is 2^-127. Elements are multiplied by the inverse of the scale, which is
exact, and saturate.
"""

from __future__ import annotations

from math import frexp
from typing import Final, Literal

import numpy as np

from fp4ref.numerics.elements import BLOCKS, ScaleFormat
from fp4ref.numerics.formats import F32, U8, decode_ue8m0, encode_ue8m0
from fp4ref.tensors.recipes.recipe import Blocks, Made, Recipe, Rule

_MANTISSA: Final = 23
Mode = Literal["floor", "even", "ceil", "rceil"]


def _exponent(amax: F32, mode: Mode, mantissa_bits: int) -> np.ndarray[tuple[int, ...]]:
    """Return the biased exponent of the power of two that stands for amax."""
    bits = np.ascontiguousarray(amax).view(np.uint32).astype(np.int64)
    if mode == "even":
        bits += 1 << (_MANTISSA - mantissa_bits - 1)
    exponent = bits >> _MANTISSA
    if mode == "ceil":
        exponent += bits & ((1 << _MANTISSA) - 1) > 0
    return exponent


def _scales(b: Blocks, mode: Mode) -> tuple[U8, F32]:
    """Return the scales, and those before rounding."""
    if mode == "rceil":
        wanted = b.amax * np.float32(1 / b.element.largest)
        scales = encode_ue8m0(wanted)
        return np.where(np.isfinite(b.amax), scales, np.uint8(0xFF)), wanted
    top = frexp(b.element.largest)[1] - 1
    exponent = _exponent(b.amax, mode, b.element.mantissa_bits)
    scales = np.clip(exponent - top, 0, 255).astype(np.uint8)
    finite = np.isfinite(b.amax) & ((exponent < 0xFF) | (mode == "ceil"))
    wanted = b.amax * np.float32(2.0**-top)
    return np.where(finite, scales, np.uint8(0xFF)), wanted


def _rule(mode: Mode) -> Rule:
    def quantise(b: Blocks) -> Made:
        scales, wanted = _scales(b, mode)
        inverse = decode_ue8m0(np.where(scales == 0xFF, scales, 254 - scales))
        return Made(b.times(inverse), scales, wanted)

    return quantise


_SUMMARIES: Final[dict[Mode, str]] = {
    "floor": "scale = 2^(floor(log2 amax) - 2 for E2M1)",
    "even": "the same, amax rounded to the element's mantissa first",
    "ceil": "scale = 2^(ceil(log2 amax) - 2 for E2M1)",
    "rceil": "scale = amax * 1/6 for E2M1, rounded up to a power of two",
}

RECIPES = tuple(
    Recipe(
        name=f"mx_{mode}",
        summary=f"{summary}; code = x / scale",
        source="torchao prototype/mx_formats/mx_tensor.py, to_mx",
        version="050515e8 (2026-09)",
        beside="torchao itself at 36027d82d, on the CPU: equal on 5 million numbers; "
        "0.18.0 differs: it divides, by at least 2^-126",
        rule=_rule(mode),
        global_scale="none",
        formats=tuple(name for name in BLOCKS if name.startswith("mx")),
        scale_formats=(ScaleFormat.UE8M0,),
        dtypes=("float32", "bfloat16"),
    )
    for mode, summary in _SUMMARIES.items()
)
