"""losses: what quantising loses, as warnings."""

from __future__ import annotations

import warnings
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fp4ref.numerics.elements import BLOCKS, ScaleFormat, element

MOST_AUTO_SCALE: Final = float(np.finfo(np.float32).max) * 2.0**-9
"""Over the smallest UE4M3 scale, 2^-9, it is float32's largest number."""


class SaturationWarning(UserWarning):
    """The largest values of a block were clipped, because its scale cannot grow."""


class UnderflowWarning(UserWarning):
    """Blocks decode to zero or to too little: a scale or its inverse has no room."""


class NonFiniteWarning(UserWarning):
    """The input holds NaN or Inf, which E2M1 cannot."""


def warn_of_losses(
    values: NDArray[np.float32],
    format: str,
    norm: float,
    scale_format: ScaleFormat,
    auto: bool,
) -> None:
    """Warn of NaN, Inf and saturated blocks; `quantize` is two frames up."""
    of = element(format)
    magnitudes = np.abs(values.reshape(-1, BLOCKS[format].vec_size))
    finite = np.isfinite(magnitudes)
    if not finite.all():
        lacks = "has neither" if of.nan_code is None else "takes no Inf"
        nans = int(np.isnan(magnitudes).sum())
        warnings.warn(
            f"x holds {nans} NaN and {int((~finite).sum()) - nans} Inf; "
            f"{of.name.upper()} {lacks}. A NaN makes its block NaN, an Inf becomes "
            "the largest value",
            NonFiniteWarning,
            stacklevel=3,
        )
    scale = scale_format.element
    largest = scale.largest
    amax = magnitudes.max(axis=-1, where=finite, initial=0).astype(np.float64)
    # G = 2688 / amax is itself rounded, so amax * G may be an ulp above 2688.
    saturated = int((amax * norm > of.largest * largest * (1 + 2.0**-20)).sum())
    if saturated:
        warnings.warn(
            f"{saturated} of {len(amax)} blocks saturate: their largest value times "
            f"the global scale exceeds {of.largest:g} * {largest:g}, and is clipped "
            "to it. Pass global_scale='auto', or a smaller number",
            SaturationWarning,
            stacklevel=3,
        )
    live = int((amax > 0).sum())
    vanishing = 6 * scale.vanishing
    if of.name != "e2m1":  # half of the smallest number, under the smallest scale
        vanishing = float(of.values(np.array(1))) / 2 * 2.0**-127
    lost = int(((amax > 0) & (amax * norm <= vanishing)).sum())
    if 2 * lost > live:
        remedy = (
            "Pass global_scale='auto'; if the number was amax / 2688, pass its inverse"
        )
        if auto:
            remedy = (
                "Multiply the matrix by a power of two: it is at float32's lower end"
                if norm >= MOST_AUTO_SCALE
                else f"The largest value, {amax.max():g}, leaves them no room; is it "
                "right?"
            )
        warnings.warn(
            f"{lost} of {live} blocks decode to zero: their largest value times the "
            f"global scale {norm:g} is so small that the block scale rounds to zero. "
            + remedy,
            UnderflowWarning,
            stacklevel=3,
        )


def warn_of_shrinking(
    scales: NDArray[np.uint8], norm: float, scale_format: ScaleFormat
) -> None:
    """Warn where the factor of a block is cut to FLT_MAX; `quantize` is one frame up.

    A scale of 0 is `warn_of_losses`'s.
    """
    factors = scale_format.decode(scales).astype(np.float64)
    largest = float(np.finfo(np.float32).max)
    shrunk = int(((factors > 0) & (norm > factors * largest)).sum())
    if shrunk:
        warnings.warn(
            f"{shrunk} of {scales.size} blocks come back too small: the global scale "
            f"{norm:g} over their block scale is beyond float32. Pass "
            "global_scale='auto', or a smaller number",
            UnderflowWarning,
            stacklevel=3,
        )
