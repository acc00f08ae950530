"""compressed_tensors: what llm-compressor stores; it divides.

``amax / 6`` is computed in the type of the input, so bfloat16 weights round it to
bfloat16 first. A scale that rounds to 0 becomes 0.125 (0x20). The sign of a code is
that of a number below 0. Later versions round the quotient to bfloat16 before they
round it to E2M1, which is the second recipe.
"""

from __future__ import annotations

from typing import Final

import ml_dtypes
import numpy as np

from fp4ref.numerics.formats import F32, U8, decode_bf16, encode_bf16
from fp4ref.tensors.recipes.recipe import (
    Blocks,
    Made,
    Recipe,
    saturated_e4m3,
    without_sign_of_zero,
)

_SIX: Final = np.float32(6)
_FOR_ZERO: Final = 0x20
_NARROW: Final = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16}


def _scaled(b: Blocks) -> tuple[F32, U8, F32]:
    """Return the quotients, the scales, and those before rounding."""
    sixth = b.amax / _SIX
    if b.dtype in _NARROW:
        sixth = sixth.astype(_NARROW[b.dtype]).astype(np.float32)
    wanted = b.encode * sixth
    scales = saturated_e4m3(wanted)
    scales = np.where(scales == 0, np.uint8(_FOR_ZERO), scales)
    return b.over(b.scale_format.decode(scales) / b.encode), scales, wanted


def quantise(b: Blocks) -> Made:
    """Divide by ``scale / G``."""
    scaled, scales, wanted = _scaled(b)
    return Made(without_sign_of_zero(b.round(scaled), scaled), scales, wanted)


def by_bf16(b: Blocks) -> Made:
    """The same, and round to bfloat16 on the way."""
    scaled, scales, wanted = _scaled(b)
    rounded = decode_bf16(encode_bf16(scaled))
    return Made(without_sign_of_zero(b.round(rounded), rounded), scales, wanted)


_SOURCE: Final = "compressed-tensors quantization/utils and quant_args.py"
_SCALE: Final = "scale = G * (amax / 6), 0.125 for 0"

RECIPES = (
    Recipe(
        name="compressed_tensors",
        summary=f"{_SCALE}; code = x / (scale / G)",
        source=_SOURCE,
        version="04a58ff4, 02012432 (2026-06)",
        beside="compressed-tensors 0.20.1 itself, on the CPU: equal on 8 million "
        "numbers",
        rule=quantise,
    ),
    Recipe(
        name="compressed_tensors_bf16",
        summary=f"{_SCALE}; code = bf16(x / (scale / G))",
        source="compressed-tensors quantization/utils/fp4_utils.py, cast_to_fp4",
        version="0d1c655f (2026-09)",
        beside="no; its formula, written again with scalars",
        rule=by_bf16,
    ),
)
