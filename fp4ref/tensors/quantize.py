"""quantize: a matrix of numbers to codes, block scales and a global scale."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fp4ref.arguments import require_array, require_choice
from fp4ref.errors import InputError
from fp4ref.numerics.elements import BLOCKS, ScaleFormat, element
from fp4ref.numerics.formats import F32, U8, require_codes
from fp4ref.numerics.hadamard import hadamard
from fp4ref.numerics.quantize import (
    block_magnitudes,
    largest_magnitude,
    quantize_blocks,
)
from fp4ref.numerics.stochastic import encode_stochastic
from fp4ref.tensors.block_format import (
    choose_scale_format,
    positive_float32,
    require_format,
)
from fp4ref.tensors.block_scaled import BlockScaled
from fp4ref.tensors.global_scales import automatic, largest_behind
from fp4ref.tensors.losses import (
    warn_of_losses,
    warn_of_nonfinite,
    warn_of_outcome,
    warn_of_shrinking,
)
from fp4ref.tensors.recipes import RECIPES
from fp4ref.tensors.recipes.recipe import (
    Blocks,
    Recipe,
    largest_magnitudes,
    run_rule,
)

Nonfinite = Literal["propagate", "drop", "raise"]


class WholeScale(NamedTuple):
    """The global scale of a whole matrix, for parts of it that are quantised alone.

    Attributes
    ----------
    encode, decode
        G and its inverse, as the recipe's library rounds them.
    largest
        The magnitude that they follow from.
    """

    encode: float
    decode: float
    largest: float


def quantize(
    x: ArrayLike,
    format: str = "nvfp4",
    recipe: str = "cutlass",
    global_scale: float | WholeScale | Literal["auto"] | None = None,
    scale_format: ScaleFormat | str | None = None,
    *,
    global_scale_convention: Literal["encode", "decode"] = "encode",
    nonfinite: Nonfinite | None = None,
    random_bits: ArrayLike | None = None,
    hadamard_size: int | None = None,
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
        Whose formula: a name of `fp4ref.tensors.recipes.RECIPES`, which ``fp4ref
        recipes`` lists.
    global_scale
        None is one level of scales. ``"auto"`` is ``448 * 6 / amax``, 1.0 for an
        all-zero tensor; for UE4M3 only. NaNs do not count, an Inf makes it 1.0. For
        CUTLASS's recipe it stays below 2^119, beyond which blocks would come back too
        small. A number is used as it is. What `automatic_global_scale` gives for a
        matrix quantises rows of it to the bytes that they have in the whole.
    global_scale_convention
        Of a number: ``"encode"`` is G, ``"decode"`` its inverse, as in
        `BlockScaled.from_packed`.
    nonfinite
        What to do with NaN: ``"propagate"`` makes the scale of its block NaN,
        ``"drop"`` leaves it out of the largest magnitude and makes it 6, ``"raise"``
        refuses NaN and Inf. None is what the recipe's library does. An Inf saturates,
        or makes an MX block NaN.
    random_bits : uint8 (..., M, K)
        Rounds codes stochastically, as ``cvt.rs`` does. These are the upper 8 of an
        element's 16 random bits; the others are 0. Elements of E2M1 only.
    hadamard_size
        Transforms every run of so many elements first, usually 16. The codes are those
        of the transformed matrix.

    Raises
    ------
    InputError
        Wrong type, shape, format, recipe or option; or NaN or Inf, if that is refused.

    Warns
    -----
    SaturationWarning
        ``amax * global_scale`` of a block is above its element's largest value times
        the largest scale (2688 for NVFP4 with UE4M3).
    UnderflowWarning
        Most blocks that are not zero decode to zero, or blocks come back
        too small because ``global_scale / scale`` is beyond float32.
    NonFiniteWarning
        `x` holds NaN or Inf, or a scale is NaN.
    """
    chosen = RECIPES[require_choice(recipe, "recipe", tuple(RECIPES), gap="recipe")]
    require_choice(nonfinite, "nonfinite", (None, "propagate", "drop", "raise"))
    format = _format_of(chosen, format)
    scales_in = _scale_format_of(chosen, format, scale_format)
    vec_size = BLOCKS[format].vec_size
    values = _as_float32(x)
    if values.ndim < 2 or 0 in values.shape or values.shape[-1] % vec_size:
        raise InputError(
            f"x of shape {values.shape}; {format} takes (..., M, K) with K a multiple "
            f"of {vec_size}, the block that shares a scale. Pad K with zeros"
        )
    if nonfinite == "raise":
        _refuse_nonfinite(values)
    if hadamard_size is not None:
        values = hadamard(values, hadamard_size)
    drop = (nonfinite or chosen.nan) == "drop"
    by_blocks = recipe == "cutlass" and random_bits is None and not drop
    magnitudes = block_magnitudes(values, vec_size) if by_blocks else None
    encode, decode, largest = _settle_global_scale(
        global_scale, global_scale_convention, chosen, scales_in, values, magnitudes
    )
    auto = isinstance(global_scale, str | WholeScale)
    if magnitudes is not None:
        norm = 1.0 if encode is None else encode
        warn_of_losses(magnitudes, format, norm, scales_in, auto)
        codes, scales = quantize_blocks(
            values,
            norm=norm,
            scale_format=scales_in,
            vec_size=vec_size,
            element_format=format,
        )
        warn_of_shrinking(scales, norm, scales_in)
    else:
        dtype = require_array(x, "x").dtype.name
        blocks = _blocks(values, chosen, format, scales_in, encode, decode, drop, dtype)
        blocks = blocks._replace(round=_rounding(format, random_bits, values.shape))
        if largest is not None:
            blocks = blocks._replace(
                largest=largest_behind(
                    np.asarray(largest, np.float32), blocks.encode, chosen
                )
            )
        codes, scales, _ = run_rule(chosen, blocks)
        codes = codes.reshape(values.shape)
        warn_of_nonfinite(values, scales, format, scales_in, drop=drop)
        warn_of_outcome(values, codes, scales, format, encode, scales_in, auto)
    return BlockScaled(codes, scales, format, scales_in, encode)


def _blocks(
    values: F32,
    recipe: Recipe,
    format: str,
    scale_format: ScaleFormat,
    encode: float | None,
    decode: float | None,
    drop: bool,
    dtype: str,
) -> Blocks:
    vec_size = BLOCKS[format].vec_size
    return Blocks(
        values=values.reshape(*values.shape[:-1], -1, vec_size),
        amax=largest_magnitudes(values, vec_size, drop, recipe.rows),
        encode=np.asarray(1.0 if encode is None else encode, np.float32),
        decode=np.asarray(1.0 if decode is None else decode, np.float32),
        one_level=encode is None,
        largest=None,
        range=recipe.range,
        dtype=dtype,
        element=element(format),
        scale_format=scale_format,
        round=element(format).encode,
    )


def _rounding(
    format: str, random_bits: ArrayLike | None, shape: tuple[int, ...]
) -> Callable[[F32], U8]:
    """Return what makes codes of float32: to nearest, or by random bits."""
    if random_bits is None:
        return element(format).encode
    if element(format).name != "e2m1":
        raise InputError(
            f"random_bits with {format}; stochastic rounding is here for elements of "
            "E2M1 alone",
            gap="recipe",
        )
    bits = require_codes(random_bits, "random_bits")
    if bits.shape != shape:
        raise InputError(
            f"random_bits of shape {bits.shape}; need {shape}, a byte for each element"
        )
    random = bits.astype(np.uint16) << np.uint16(8)
    return lambda x: encode_stochastic(x, random.reshape(x.shape), "e2m1")


def _format_of(recipe: Recipe, format: str) -> str:
    """Return the block format, if the recipe has it."""
    format = require_format(format)
    if format not in recipe.formats:
        raise InputError(
            f"recipe {recipe.name!r} with format {format!r}; its source has "
            f"{' and '.join(map(repr, recipe.formats))}"
        )
    return format


def _scale_format_of(
    recipe: Recipe, format: str, wanted: ScaleFormat | str | None
) -> ScaleFormat:
    """Return the format of the scales, if the recipe has it."""
    chosen = choose_scale_format(format, wanted)
    if chosen not in recipe.scale_formats:
        raise InputError(
            f"recipe {recipe.name!r} with {chosen.name} scales; its source has "
            f"{' and '.join(each.name for each in recipe.scale_formats)}"
        )
    return chosen


def _settle_global_scale(
    global_scale: float | WholeScale | str | None,
    convention: str,
    recipe: Recipe,
    scale_format: ScaleFormat,
    values: NDArray[np.float32],
    magnitudes: tuple[F32, int, int] | None,
) -> tuple[float | None, float | None, float | None]:
    """Return G, its inverse, and the magnitude behind them unless G was a number."""
    require_choice(convention, "global_scale_convention", ("encode", "decode"))
    if global_scale is None:
        return None, None, None
    if recipe.global_scale == "none":
        raise InputError(
            f"global_scale with recipe {recipe.name!r}, which has one level of scales; "
            "pass None"
        )
    if isinstance(global_scale, WholeScale):
        return global_scale
    if not isinstance(global_scale, str):
        given = positive_float32(global_scale, "global_scale")
        other = positive_float32(np.float32(1) / np.float32(given), "1 / global_scale")
        return (given, other, None) if convention == "encode" else (other, given, None)
    if global_scale != "auto" or scale_format is not ScaleFormat.UE4M3:
        raise InputError(
            f"global_scale: {global_scale!r} with {scale_format.name} scales; pass a "
            "number, None, or for UE4M3 scales 'auto'"
        )
    if magnitudes is None:
        return automatic_global_scale(values, recipe)
    largest, _, infs = magnitudes
    return _whole_scale(np.float32(np.inf if infs else largest.max()), recipe)


def automatic_global_scale(values: F32, recipe: Recipe) -> WholeScale:
    """Return G and its inverse for the whole tensor; see `global_scales.automatic`."""
    return _whole_scale(largest_magnitude(values), recipe)


def _whole_scale(amax: np.float32, recipe: Recipe) -> WholeScale:
    encode, decode = automatic(np.asarray(amax), recipe)
    return WholeScale(float(encode), float(decode), float(amax))


def _refuse_nonfinite(values: F32) -> None:
    wrong = ~np.isfinite(values)
    if wrong.any():
        at = tuple(int(i) for i in np.unravel_index(int(wrong.argmax()), values.shape))
        raise InputError(
            f"x holds {int(wrong.sum())} NaN or Inf, the first, {values[at]}, at "
            f"{at}, and nonfinite='raise'. Mend them, or pass 'propagate' or 'drop'"
        )


def _as_float32(x: ArrayLike) -> NDArray[np.float32]:
    array = require_array(x, "x")
    if array.dtype.name not in ("float32", "float16", "bfloat16"):
        raise InputError(
            f"x: dtype {array.dtype}; need float32, float16 or bfloat16. Rounding "
            "anything else to float32 is for you to decide: .astype(numpy.float32)"
        )
    with np.errstate(invalid="ignore"):  # a signalling NaN
        return array.astype(np.float32, copy=False)
