"""block_format: which blocks, scale formats and shapes go together."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fp4ref.arguments import require_array, require_choice, require_number
from fp4ref.errors import InputError, LayoutError
from fp4ref.layout import LaidOutScales, SwizzledScales, padded_shape, sf_nbytes
from fp4ref.numerics.elements import BLOCKS, ScaleFormat
from fp4ref.numerics.formats import require_codes

NVFP4_VEC_SIZE: Final = BLOCKS["nvfp4"].vec_size
"""Elements that share a scale in NVFP4."""


def require_format(format: str | None) -> str:
    """Return the name of a format; None is refused, because bytes do not tell."""
    if format is None:
        raise InputError(
            "no format given; a scale byte does not tell it: 0x38 is 1.0 as UE4M3 and "
            f"2^-71 as UE8M0. Pass format={' or '.join(map(repr, BLOCKS))}"
        )
    return require_choice(format, "format", tuple(BLOCKS), gap="block-format")


def choose_scale_format(
    format: str, wanted: ScaleFormat | str | None, declared: ScaleFormat | None = None
) -> ScaleFormat:
    """Settle the scale format from the format, the argument and the array's type."""
    vec_size, legal = BLOCKS[format].vec_size, BLOCKS[format].scale_formats
    if wanted is not None:
        names = [name for f in ScaleFormat for name in (f, f.value)]
        wanted = require_choice(wanted, "scale_format", names)
    chosen = wanted if wanted is not None else declared or legal[0]
    for scale_format in legal:
        if chosen in (scale_format, scale_format.value):
            if declared not in (None, scale_format):
                raise InputError(
                    f"scale_format {scale_format.value!r}, but the scales are an array "
                    "of another type. Drop scale_format, or pass .view(numpy.uint8)"
                )
            return scale_format
    raise InputError(
        f"{format} with scale format {chosen!r}; with blocks of {vec_size} the MMA "
        f"takes {' or '.join(repr(f.value) for f in legal)}"
    )


def read_scales(
    scales: ArrayLike | SwizzledScales | LaidOutScales,
) -> tuple[NDArray[np.uint8], ScaleFormat | None]:
    """Return the scale codes, and their format where the array's type says it."""
    if isinstance(scales, SwizzledScales):
        return scales.unswizzle(), None
    if isinstance(scales, LaidOutScales):
        return scales.matrix(), None
    array = require_array(scales, "scales")
    name = array.dtype.name
    declared = next((f for f in ScaleFormat if f.element.dtype == name), None)
    if declared is None:
        return require_codes(array, "scales"), None
    array = array.view(np.uint8)
    if (array > declared.nan_code).any():
        raise InputError(f"scales: a {name} value has its sign set; scales do not")
    return array, declared


def check_shapes(
    codes: NDArray[np.uint8], scales: NDArray[np.uint8], format: str
) -> None:
    """Raise for codes and scales whose shapes do not go together."""
    vec_size = BLOCKS[format].vec_size
    if codes.ndim < 2 or 0 in codes.shape or codes.shape[-1] % vec_size:
        raise InputError(
            f"codes of shape {codes.shape}; {format} takes (..., M, K), one code per "
            f"byte, with K a multiple of {vec_size}. Pad K with code 0 and scale 0"
        )
    *batch, rows, k = codes.shape
    cols = k // vec_size
    if scales.shape == (*batch, rows, cols):
        return
    if scales.shape in {
        (*batch, sf_nbytes(rows, cols)),
        (*batch, *padded_shape(rows, cols)),
    }:
        raise LayoutError(
            f"scales of shape {scales.shape} look like the 128x4 layout of ({rows}, "
            f"{cols}) scales. Wrap them: SwizzledScales(flat, rows={rows}, cols={cols})"
        )
    fitting = [
        name
        for name, block in BLOCKS.items()
        if scales.shape == (*batch, rows, k // block.vec_size)
    ]
    raise InputError(
        f"scales of shape {scales.shape}; codes {codes.shape} in {format} need "
        f"{(*batch, rows, cols)}, one scale per {vec_size} elements. "
        + (f"The shape is that of format={fitting[0]!r}" if fitting else "Check K")
    )


def positive_float32(value: Any, name: str) -> float:
    """Round to float32; refuse what is not a positive finite number there."""
    try:
        with np.errstate(over="ignore", under="ignore"):
            rounded = float(np.float32(require_number(value, name)))
    except InputError:
        rounded = float("nan")
    if not 0 < rounded < float("inf"):
        raise InputError(
            f"{name}: {value!r:.60}; need a positive number that is finite in float32, "
            "or None for one level of scales"
        )
    return rounded
