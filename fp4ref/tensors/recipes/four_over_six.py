"""four_over_six: each block maps its largest value to 6, or to 4 if that errs less.

The steps of E2M1 between 4 and 6 are the widest; a block scaled by 3/2 more does
without them. Both candidates are TransformerEngine's, but for ``amax / 6``, which is a
true division here. The error of a candidate is a sum in float32, in the order of the
elements, of distances (mae) or their squares (mse) between its decoded values,
``code * scale * largest / (6 * range)``, and the input. A tie takes 6. Where a number
is given for G, the largest is ``6 * range / G``. With a range of
256 no scale of a block that maps to 4 is cut at 448. A name has all of this.
"""

from __future__ import annotations

from typing import Final, Literal

import numpy as np

from fp4ref.numerics.formats import F32, decode_e2m1
from fp4ref.tensors.recipes.recipe import (
    FLT_MAX,
    Blocks,
    Made,
    Recipe,
    Rule,
    saturated_e4m3,
)

_SIX: Final = np.float32(6)
_EXPANDED: Final = np.float32(1.5)


def _candidate(b: Blocks, wanted: F32) -> Made:
    scales = saturated_e4m3(wanted)
    divisor = b.scale_format.decode(scales) * b.decode
    codes = b.times(np.minimum(np.float32(1) / divisor, FLT_MAX))
    return Made(codes, scales, wanted)


def _error(b: Blocks, made: Made, measure: str) -> F32:
    """Sum the error of each block, first element first."""
    denominator = np.float32(6 * b.range)
    largest = b.largest
    if largest is None:
        largest = denominator * b.decode if b.one_level else denominator / b.encode
    total = np.zeros(b.amax.shape, np.float32)
    scale = b.scale_format.decode(made.scales)
    for i in range(b.values.shape[-1]):
        decoded = decode_e2m1(made.codes[..., i]) * scale * largest / denominator
        distance = decoded - b.values[..., i]
        total += distance * distance if measure == "mse" else np.abs(distance)
    return total


def _rule(measure: Literal["mae", "mse"]) -> Rule:
    def quantise(b: Blocks) -> Made:
        base = b.amax / _SIX * b.encode
        four, six = _candidate(b, base * _EXPANDED), _candidate(b, base)
        better = _error(b, four, measure) < _error(b, six, measure)
        return Made(
            np.where(better[..., np.newaxis], four.codes, six.codes),
            np.where(better, four.scales, six.scales),
            np.where(better, four.wanted, six.wanted),
        )

    return quantise


RECIPES = tuple(
    Recipe(
        name=f"four_over_six_{measure}_{largest}_tie_six",
        summary=f"amax to 6, or to 4 if the {measure} is less; G = {largest} * 6 / "
        "largest; a tie takes 6",
        source="TransformerEngine common/cast/nvfp4/quantize_4over6_nvfp4.cuh and "
        "pytorch/custom_recipes/reference_nvfp4.py",
        version="1498424b (2026-09)",
        beside="its reference itself at d0067d0da, on the CPU: equal on 4 million "
        "numbers; not the CUDA kernel",
        rule=_rule(measure),
        range=float(largest),
    )
    for measure in ("mae", "mse")
    for largest in (448, 256)
)
