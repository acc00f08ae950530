"""quantize: a matrix of numbers to codes, block scales and a global scale."""

from __future__ import annotations

from typing import Final, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fp4ref.arguments import require_array, require_choice
from fp4ref.errors import InputError
from fp4ref.numerics.elements import BLOCKS, ScaleFormat
from fp4ref.numerics.quantize import amax_global_scale, quantize_blocks
from fp4ref.tensors.block_format import (
    choose_scale_format,
    positive_float32,
    require_format,
)
from fp4ref.tensors.block_scaled import BlockScaled
from fp4ref.tensors.losses import MOST_AUTO_SCALE, warn_of_losses, warn_of_shrinking

RECIPES: Final = ("cutlass",)


def quantize(
    x: ArrayLike,
    format: str = "nvfp4",
    recipe: str = "cutlass",
    global_scale: float | Literal["auto"] | None = None,
    scale_format: ScaleFormat | str | None = None,
) -> BlockScaled:
    """Quantise a matrix, one scale per block of K.

    Parameters
    ----------
    x : (..., M, K)
        float32, or float16 or bfloat16, which convert exactly. float64 is refused:
        rounding it first would round twice. K is a multiple of the block, 16 or 32.
    format
        One of `BlockScaled`'s. Formats without scales need no quantiser: an array of
        their type, as ``x.astype(ml_dtypes.bfloat16)``, is an operand as it is.
    recipe
        ``"cutlass"``, the only one: see `fp4ref.numerics.quantize`. A NaN makes its
        whole block NaN, an Inf saturates.
    global_scale
        None is one level of scales. ``"auto"`` is ``448 * 6 / amax``, 1.0 for an
        all-zero tensor; for UE4M3 only. It stays below 2^119, beyond which blocks would
        come back too small. A number is used as it is.

    Raises
    ------
    InputError
        Wrong type, shape, format, recipe or global scale.

    Warns
    -----
    SaturationWarning
        ``amax * global_scale`` of a block is above its element's largest value times
        the largest scale (2688 for NVFP4 with UE4M3).
    UnderflowWarning
        The scales of most blocks that are not zero round to zero, or blocks come back
        too small because ``global_scale / scale`` is beyond float32.
    NonFiniteWarning
        `x` holds NaN or Inf.
    """
    require_choice(recipe, "recipe", RECIPES, gap="recipe")
    format = require_format(format)
    chosen = choose_scale_format(format, scale_format)
    vec_size = BLOCKS[format].vec_size
    values = _as_float32(x)
    if values.ndim < 2 or 0 in values.shape or values.shape[-1] % vec_size:
        raise InputError(
            f"x of shape {values.shape}; {format} takes (..., M, K) with K a multiple "
            f"of {vec_size}, the block that shares a scale. Pad K with zeros"
        )
    auto = isinstance(global_scale, str)
    global_scale = _settle_global_scale(global_scale, chosen, values)
    norm = 1.0 if global_scale is None else global_scale
    warn_of_losses(values, format, norm, chosen, auto)
    codes, scales = quantize_blocks(
        values,
        norm=norm,
        scale_format=chosen,
        vec_size=vec_size,
        element_format=format,
    )
    warn_of_shrinking(scales, norm, chosen)
    return BlockScaled(codes, scales, format, chosen, global_scale)


def _settle_global_scale(
    global_scale: float | str | None,
    scale_format: ScaleFormat,
    values: NDArray[np.float32],
) -> float | None:
    """Return the number that is asked for; ``"auto"`` follows from the values."""
    if global_scale is None:
        return None
    if not isinstance(global_scale, str):
        return positive_float32(global_scale, "global_scale")
    if global_scale != "auto" or scale_format is not ScaleFormat.UE4M3:
        raise InputError(
            f"global_scale: {global_scale!r} with {scale_format.name} scales; pass a "
            "number, None, or for UE4M3 scales 'auto'"
        )
    return min(float(amax_global_scale(values)), MOST_AUTO_SCALE)


def _as_float32(x: ArrayLike) -> NDArray[np.float32]:
    array = require_array(x, "x")
    if array.dtype.name not in ("float32", "float16", "bfloat16"):
        raise InputError(
            f"x: dtype {array.dtype}; need float32, float16 or bfloat16. Rounding "
            "anything else to float32 is for you to decide: .astype(numpy.float32)"
        )
    with np.errstate(invalid="ignore"):  # a signalling NaN
        return array.astype(np.float32)
