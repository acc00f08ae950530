"""cutlass: the output stage of a block-scaled GEMM.

The same as `fp4ref.numerics.quantize_blocks`, which says more; this form also takes a
global scale for each row and other ways of rounding.
"""

from __future__ import annotations

import numpy as np

from fp4ref.numerics.elements import BLOCKS, ScaleFormat
from fp4ref.tensors.recipes.recipe import FLT_MAX, Blocks, Made, Recipe


def quantise(b: Blocks) -> Made:
    """Multiply twice: amax by ``G / 6``, the elements by ``G / scale``."""
    step = b.encode * (np.float32(1) / np.float32(b.element.largest))
    wanted = b.amax * step
    scales = b.scale_format.encode(wanted)
    reciprocal = np.float32(1) / b.scale_format.decode(scales)
    return Made(b.times(np.minimum(b.encode * reciprocal, FLT_MAX)), scales, wanted)


RECIPES = (
    Recipe(
        name="cutlass",
        summary="scale = amax * (G * 1/6); code = x * min(G * 1/scale, FLT_MAX)",
        source="CUTLASS epilogue/fusion/sm100_visitor_store_tma_warpspecialized.hpp",
        version="7107b0553 (2026-08-20)",
        beside="CUTLASS 72b, compiled, on the machine (tests/cutlass)",
        rule=quantise,
        formats=tuple(BLOCKS),
        scale_formats=(ScaleFormat.UE4M3, ScaleFormat.UE8M0),
    ),
)
