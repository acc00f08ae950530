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
    """NaN or Inf: in the input, which E2M1 cannot hold; in scales; or decoded."""


def warn_of_losses(
    magnitudes: tuple[NDArray[np.float32], int, int],
    format: str,
    norm: float,
    scale_format: ScaleFormat,
    auto: bool,
) -> None:
    """Warn of NaN, Inf and saturated blocks; `quantize` is two frames up.

    Parameters
    ----------
    magnitudes
        `numerics.quantize.block_magnitudes` of the matrix.
    """
    of = element(format)
    largest_of, nans, infs = magnitudes
    if nans or infs:
        lacks = "has neither" if of.nan_code is None else "takes no Inf"
        warnings.warn(
            f"x holds {nans} NaN and {infs} Inf; "
            f"{of.name.upper()} {lacks}. A NaN makes its block NaN, an Inf becomes "
            "the largest value",
            NonFiniteWarning,
            stacklevel=3,
        )
    scale = scale_format.element
    largest = scale.largest
    # G = 2688 / amax is itself rounded, so amax * G may be an ulp above 2688.
    limit = of.largest * largest * (1 + 2.0**-20)
    vanishing = 6 * scale.vanishing
    if of.name != "e2m1":  # half of the smallest number, under the smallest scale
        vanishing = float(of.values(np.array(1))) / 2 * 2.0**-127
    ends = (float(largest_of.min()), float(largest_of.max()))
    if ends[0] * norm > vanishing and ends[1] * norm <= limit:
        return
    amax = largest_of.astype(np.float64)
    saturated = int((amax * norm > limit).sum())
    if saturated:
        warnings.warn(
            f"{saturated} of {len(amax)} blocks saturate: their largest value times "
            f"the global scale exceeds {of.largest:g} * {largest:g}, and is clipped "
            "to it. Pass global_scale='auto', or a smaller number",
            SaturationWarning,
            stacklevel=3,
        )
    live = int((amax > 0).sum())
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
    codes = np.arange(256, dtype=np.uint8)
    factors = scale_format.decode(codes).astype(np.float64)
    shrinks = (factors > 0) & (norm > factors * float(np.finfo(np.float32).max))
    shrunk = int(shrinks[scales].sum()) if shrinks.any() else 0
    if shrunk:
        warnings.warn(
            f"{shrunk} of {scales.size} blocks come back too small: the global scale "
            f"{norm:g} over their block scale is beyond float32. Pass "
            "global_scale='auto', or a smaller number",
            UnderflowWarning,
            stacklevel=3,
        )


def warn_of_nonfinite(
    values: NDArray[np.float32],
    scales: NDArray[np.uint8],
    format: str,
    scale_format: ScaleFormat,
    *,
    drop: bool,
) -> None:
    """Warn of NaN, Inf and scales that are NaN; `quantize` is one frame up."""
    nans = int(np.isnan(values).sum())
    infs = int(np.isinf(values).sum())
    blocks = int((scales == scale_format.nan_code).sum())
    if not nans and not infs and not blocks:
        return
    became = "A NaN is left out and becomes 6" if drop else "A NaN makes its block NaN"
    warnings.warn(
        f"x holds {nans} NaN and {infs} Inf; {blocks} of {scales.size} blocks are NaN "
        f"in {format}. {became}, an Inf becomes the largest value or makes its block "
        "NaN. Pass nonfinite='raise' to refuse them",
        NonFiniteWarning,
        stacklevel=3,
    )


def warn_of_nan_scales(scales: NDArray[np.uint8], scale_format: ScaleFormat) -> None:
    """Warn of scales that are NaN in what others stored; the loader is one frame up."""
    codes = np.arange(256, dtype=np.uint8)
    wrong = np.isnan(scale_format.decode(codes))[scales]
    if wrong.any():
        at = tuple(int(i) for i in np.argwhere(wrong)[0])
        warnings.warn(
            f"{int(wrong.sum())} of {scales.size} scales are NaN, the first at "
            f"scales{list(at)}: their blocks decode to NaN. Either they overflowed "
            "when they were written, or they are in another format or layout",
            NonFiniteWarning,
            stacklevel=3,
        )


def warn_of_overflow(exact: NDArray[np.float64], values: NDArray[np.float32]) -> None:
    """Warn of values that are Inf in float32 alone; the decoder is one frame up."""
    if not np.isinf(values).any():
        return
    wrong = np.isinf(values) & np.isfinite(exact)
    if wrong.any():
        at = tuple(int(i) for i in np.argwhere(wrong)[0])
        warnings.warn(
            f"{int(wrong.sum())} values are beyond float32 and became Inf, the first, "
            f"{exact[at]:g}, at {list(at)}. Take dtype=numpy.float64, or look whether "
            "the global scale is the inverse",
            NonFiniteWarning,
            stacklevel=3,
        )


def warn_of_outcome(
    values: NDArray[np.float32],
    codes: NDArray[np.uint8],
    scales: NDArray[np.uint8],
    format: str,
    encode: float | None,
    scale_format: ScaleFormat,
    auto: bool,
) -> None:
    """Warn of saturated and lost blocks by what came out; `quantize` is one frame up.

    For recipes whose smallest scale is a rule of their own.
    """
    vec_size, of = BLOCKS[format].vec_size, element(format)
    magnitudes = np.abs(values).reshape(-1, vec_size)
    amax = np.fmax.reduce(magnitudes, axis=-1)
    largest = scale_format.element.largest
    with np.errstate(all="ignore"):
        limit = of.largest * largest * (1 + 2.0**-20) / (encode or 1.0)
        saturated = int(((amax > limit) & np.isfinite(amax)).sum())
    if saturated and scale_format is ScaleFormat.UE4M3:
        warnings.warn(
            f"{saturated} of {len(amax)} blocks saturate: their largest value times "
            f"the global scale exceeds {of.largest:g} * {largest:g}, and is clipped "
            "to it. Pass global_scale='auto', or a smaller number",
            SaturationWarning,
            stacklevel=3,
        )
    mask = np.uint8((1 << of.bits - 1) - 1)
    empty = ~(codes & mask).reshape(-1, vec_size).any(axis=-1)
    if scale_format is ScaleFormat.UE4M3:
        empty |= scales.ravel() == 0
    live = int((amax > 0).sum())
    lost = int(((amax > 0) & empty).sum())
    if 2 * lost > live:
        remedy = (
            "Multiply the matrix by a power of two"
            if auto
            else ("Pass global_scale='auto', or a larger number")
        )
        warnings.warn(
            f"{lost} of {live} blocks decode to zero: they are too small beside the "
            f"smallest scale. {remedy}",
            UnderflowWarning,
            stacklevel=3,
        )
