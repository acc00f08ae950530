"""recipe: what one library does to blocks of numbers, as data and one function.

A recipe is a formula for the scale of a block and for the factor that its elements are
multiplied by (or the number they are divided by), in float32 and in the library's own
order: the last bit of either decides ties. The rest, such as the largest magnitude of a
block or the global scale of a tensor, is the same for all and is in `quantize`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

import numpy as np

from fp4ref.numerics.element import Element
from fp4ref.numerics.elements import ScaleFormat
from fp4ref.numerics.formats import F32, U8
from fp4ref.numerics.subnormals import require_subnormals

FLT_MAX: Final = np.finfo(np.float32).max
SIXTH: Final = np.float32(1) / np.float32(6)
"""0x3E2AAAAB, which is also ``rcp.approx.ftz(6)``."""


class Blocks(NamedTuple):
    """What a recipe is given; all in float32.

    Attributes
    ----------
    values : (..., blocks, vec)
    amax : (..., blocks)
        The largest magnitude of each block. A NaN counts or does not: the policy.
    encode, decode
        The global scale G and its inverse as the library has the two: one is given or
        follows from the largest value, and the other is the rounded inverse of that.
        Numbers, or arrays that broadcast against `amax`. Both are 1 for one level of
        scales, which `one_level` says.
    largest
        The magnitude that G follows from, as `amax` broadcasts; None where a number was
        given for G.
    range
        Largest scale that the global scale aims at: 448 or 256.
    dtype
        Type of the input before it became float32, which is exact.
    element, scale_format
        Of the codes and of the scales.
    round
        float32 to codes of `element`: to nearest even, or stochastic.
    """

    values: F32
    amax: F32
    encode: F32
    decode: F32
    one_level: bool
    largest: F32 | None
    range: float
    dtype: str
    element: Element
    scale_format: ScaleFormat
    round: Callable[[F32], U8]

    def times(self, factor: F32) -> U8:
        """Multiply the elements of each block by its factor, and round."""
        return self.round(self.values * factor[..., np.newaxis])

    def over(self, divisor: F32) -> F32:
        """Divide the elements of each block by its number."""
        return self.values / divisor[..., np.newaxis]


class Made(NamedTuple):
    """What a recipe makes of blocks.

    Attributes
    ----------
    codes : (..., blocks, vec)
    scales : (..., blocks)
    wanted : (..., blocks)
        The scales before they were rounded to their format.
    """

    codes: U8
    scales: U8
    wanted: F32


Rule = Callable[[Blocks], Made]


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """A named recipe.

    Parameters
    ----------
    summary
        The formula in one line.
    source, version
        The file that it follows, and its commit or date.
    beside
        What outside code ran beside it in the tests; the original itself or less.
    nan
        What the library does with a NaN: it makes the scale of its block NaN, or the
        maximum drops it and the element becomes 6.
    global_scale
        What the library stores: G, its inverse, or no such number.
    formats
        Block formats, default first.
    rows
        Rows that share a scale: 16 for blocks of 16 x 16. Each row still stores it.
    dtypes
        Types of the input that the library takes.
    """

    name: str
    summary: str
    source: str
    version: str
    beside: str
    rule: Rule
    nan: Literal["propagate", "drop"] = "propagate"
    global_scale: Literal["encode", "decode", "none"] = "encode"
    range: float = 448.0
    formats: tuple[str, ...] = ("nvfp4",)
    scale_formats: tuple[ScaleFormat, ...] = (ScaleFormat.UE4M3,)
    rows: int = 1
    dtypes: tuple[str, ...] = ("float32", "float16", "bfloat16")


def saturated_e4m3(x: F32) -> U8:
    """Clamp to 448 and round to UE4M3: PyTorch's cast after a clamp. NaN stays."""
    return ScaleFormat.UE4M3.encode(np.minimum(x, np.float32(448)))


def without_sign_of_zero(codes: U8, scaled: F32) -> U8:
    """Take the sign from ``scaled < 0``: -0 becomes code 0, a small negative 8."""
    return np.where(scaled < 0, codes | np.uint8(8), codes & np.uint8(7))


def run_rule(recipe: Recipe, blocks: Blocks) -> Made:
    """Apply a recipe's formula; Inf and NaN on the way are part of it."""
    require_subnormals()
    with np.errstate(all="ignore"):
        made = recipe.rule(blocks)
    return made._replace(codes=made.codes.astype(np.uint8, copy=False))


def largest_magnitudes(values: F32, vec_size: int, drop: bool, rows: int = 1) -> F32:
    """Return the largest magnitude of each block (..., blocks).

    Parameters
    ----------
    drop
        Whether NaNs are left out, as ``max.f32`` does; a block of NaNs stays NaN.
    rows
        Of a block; the last one may have fewer. Each row has its block's.
    """
    most = np.fmax if drop else np.maximum
    runs = np.abs(values).reshape(*values.shape[:-1], -1, vec_size)
    largest: F32 = most.reduce(runs, axis=-1)
    if rows > 1:
        first = np.arange(0, largest.shape[-2], rows)
        shared = most.reduceat(largest, first, axis=-2)
        largest = shared.repeat(rows, axis=-2)[..., : largest.shape[-2], :]
    return largest
