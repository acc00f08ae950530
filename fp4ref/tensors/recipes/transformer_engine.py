"""transformer_engine: CUTLASS's scale, and true divisions for the factor."""

from __future__ import annotations

import numpy as np

from fp4ref.numerics.formats import U8
from fp4ref.tensors.recipes.recipe import (
    FLT_MAX,
    SIXTH,
    Blocks,
    Recipe,
    saturated_e4m3,
)


def quantise(b: Blocks) -> tuple[U8, U8]:
    """Divide 1 by ``scale * (1 / G)``."""
    scales = saturated_e4m3(np.minimum(b.amax * (b.encode * SIXTH), FLT_MAX))
    divisor = b.scale_format.decode(scales) * b.decode
    return b.times(np.minimum(np.float32(1) / divisor, FLT_MAX)), scales


RECIPES = (
    Recipe(
        name="transformer_engine",
        summary="scale = amax * (G * 1/6); "
        "code = x * min(1 / (scale * (1/G)), FLT_MAX)",
        source="TransformerEngine common/cast/nvfp4/core_nvfp4.cuh and "
        "pytorch/custom_recipes/reference_nvfp4.py",
        version="d0067d0da (2026-08)",
        beside="its reference itself at d0067d0da, on the CPU: equal on 4 million "
        "numbers; not the CUDA kernel",
        rule=quantise,
    ),
)
