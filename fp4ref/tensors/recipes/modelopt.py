"""modelopt: NVFP4QTensor of Model Optimizer, which divides.

A block of zeros has the scale 1.0 (0x38), a block whose scale would round to 0 the
smallest one, 2^-9. The sign of a code is that of a number below 0, so -0 is code 0. The
static form takes blocks' largest values from a calibration, here from the tensor.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from fp4ref.numerics.formats import F32
from fp4ref.tensors.recipes.recipe import (
    Blocks,
    Made,
    Recipe,
    saturated_e4m3,
    without_sign_of_zero,
)

_LEAST: Final = np.float32(2.0**-9)
_SIX: Final = np.float32(6)
_RANGE: Final = np.float32(448)
_ONE: Final = np.float32(1)


def dynamic(b: Blocks) -> Made:
    """Scale by ``amax / (6 g)``."""
    wanted = b.amax / (_SIX * b.decode)
    return _codes(b, np.where(wanted == 0, _ONE, wanted))


def static(b: Blocks) -> Made:
    """Scale by ``amax / 6 * 448 / (largest / 6)``; the largest is 2688 g."""
    largest = b.decode * np.float32(2688)
    wanted = b.amax / _SIX
    wanted = np.where(wanted == 0, _ONE, wanted)
    return _codes(b, wanted * _RANGE / (largest / _SIX))


def _codes(b: Blocks, wanted: F32) -> Made:
    wanted = np.maximum(wanted, _LEAST)
    scales = saturated_e4m3(wanted)
    scaled = b.over(b.scale_format.decode(scales) * b.decode)
    return Made(without_sign_of_zero(b.round(scaled), scaled), scales, wanted)


_BESIDE: Final = "Model Optimizer 0.47.0 itself, on the CPU: equal on 8 million numbers"
_SOURCE: Final = "Model Optimizer modelopt/torch/quantization/qtensor/nvfp4_tensor.py"

RECIPES = (
    Recipe(
        name="modelopt",
        summary="scale = max(amax / (6 g), 2^-9), 1 for zeros; code = x / (scale * g)",
        source=_SOURCE,
        version="211c6b34 (2026-09)",
        beside=_BESIDE,
        rule=dynamic,
        global_scale="decode",
    ),
    Recipe(
        name="modelopt_static",
        summary="scale = clamp(amax / 6 * 448 / (largest / 6), 2^-9, 448); "
        "code = x / (scale * g)",
        source=f"{_SOURCE}, static quantizers",
        version="211c6b34 (2026-09)",
        beside=_BESIDE,
        rule=static,
        global_scale="decode",
    ),
)
