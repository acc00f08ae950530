"""transformer_engine: CUTLASS's scale, and true divisions for the factor.

By default TransformerEngine trains with blocks of 16 x 16 for weights, so that a weight
and its transpose have the same values: the second recipe. Its 16 rows store the same
scales, as the MMA takes one for every 16 elements of a row.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from fp4ref.tensors.recipes.recipe import (
    FLT_MAX,
    SIXTH,
    Blocks,
    Made,
    Recipe,
    saturated_e4m3,
)


def quantise(b: Blocks) -> Made:
    """Divide 1 by ``scale * (1 / G)``."""
    wanted = np.minimum(b.amax * (b.encode * SIXTH), FLT_MAX)
    scales = saturated_e4m3(wanted)
    divisor = b.scale_format.decode(scales) * b.decode
    codes = b.times(np.minimum(np.float32(1) / divisor, FLT_MAX))
    return Made(codes, scales, wanted)


_FORMULA: Final = (
    "scale = amax * (G * 1/6); code = x * min(1 / (scale * (1/G)), FLT_MAX)"
)
_SOURCE: Final = (
    "TransformerEngine common/cast/nvfp4/core_nvfp4.cuh and "
    "pytorch/custom_recipes/reference_nvfp4.py"
)
_BESIDE: Final = (
    "its reference itself at d0067d0da, on the CPU: equal on 4 million numbers; not "
    "the CUDA kernel"
)

RECIPES = (
    Recipe(
        name="transformer_engine",
        summary=_FORMULA,
        source=_SOURCE,
        version="d0067d0da (2026-08)",
        beside=_BESIDE,
        rule=quantise,
    ),
    Recipe(
        name="transformer_engine_2d",
        summary=f"{_FORMULA}; amax of 16 x 16, as for weights",
        source=_SOURCE,
        version="d0067d0da (2026-08)",
        beside=_BESIDE,
        rule=quantise,
        rows=16,
    ),
)
