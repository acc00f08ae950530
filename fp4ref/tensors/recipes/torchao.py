"""torchao: true divisions for the scale, a reciprocal for the elements.

The smallest scale is 2^-6, the smallest normal number of E4M3, so a block of zeros has
the scale 0x08. Versions before 2026-08 divided the elements.
"""

from __future__ import annotations

import numpy as np

from fp4ref.tensors.recipes.recipe import Blocks, Made, Recipe, saturated_e4m3

_LEAST = np.float32(2.0**-6)
_SIX = np.float32(6)


def quantise(b: Blocks) -> Made:
    """Clamp ``amax / 6 / g`` to 2^-6 .. 448; multiply by ``(1 / g) / scale``."""
    wanted = b.amax / _SIX
    if not b.one_level:
        wanted = wanted / b.decode
    wanted = np.maximum(wanted, _LEAST)
    scales = saturated_e4m3(wanted)
    scale = b.scale_format.decode(scales)
    return Made(b.times((np.float32(1) / b.decode) / scale), scales, wanted)


RECIPES = (
    Recipe(
        name="torchao",
        summary="scale = clamp(amax / 6 / g, 2^-6, 448); code = x * ((1/g) / scale)",
        source="torchao prototype/mx_formats/nvfp4_tensor.py",
        version="36027d82d (2026-08), wheel 0.18.0",
        beside="torchao 0.18.0 itself, on the CPU: equal on 5 million numbers",
        rule=quantise,
        global_scale="decode",
        dtypes=("float32", "bfloat16"),
    ),
)
