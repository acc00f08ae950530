"""one_block: what each recipe makes of a few numbers, with every value on the way.

A *way* is a recipe with a format of blocks and of scales. NVFP4 gives 16 elements a
scale, MXFP4 32; of 16 numbers an MXFP4 block has zeros for the rest. For recipes whose
scale counts for 16 rows the other rows are taken to have nothing larger.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import sqrt
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fp4ref.numerics.elements import BLOCKS, ScaleFormat, element
from fp4ref.numerics.formats import F32, U8, decode_e2m1
from fp4ref.tensors.global_scales import automatic
from fp4ref.tensors.quantize import WholeScale
from fp4ref.tensors.recipes import RECIPES
from fp4ref.tensors.recipes.recipe import (
    Blocks,
    Recipe,
    largest_magnitudes,
    run_rule,
)

LARGEST_CODE: Final = 6.0
_MIDDLES: Final = np.array([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5], np.float32)


@dataclass(frozen=True, slots=True)
class Way:
    """A recipe with its formats, and a name for all of it."""

    name: str
    recipe: Recipe
    format: str
    scale_format: ScaleFormat

    @property
    def vec_size(self) -> int:
        """Elements that share a scale."""
        return BLOCKS[self.format].vec_size


def _ways() -> dict[str, Way]:
    """Return every recipe in every format of FP4 that it has."""
    found = {}
    for recipe in RECIPES.values():
        for format in recipe.formats:
            if BLOCKS[format].element != "e2m1":
                continue
            for scale_format in BLOCKS[format].scale_formats:
                if scale_format not in recipe.scale_formats:
                    continue
                name = recipe.name
                if format != recipe.formats[0]:
                    name += f" {format.upper()}"
                elif scale_format is not BLOCKS[format].scale_formats[0]:
                    name += f" {scale_format.name}"
                found[name] = Way(name, recipe, format, scale_format)
    return found


WAYS: Final[Mapping[str, Way]] = MappingProxyType(_ways())


class Seen(NamedTuple):
    """A few numbers, quantised in one way.

    Attributes
    ----------
    amax, wanted : (blocks,)
        Largest magnitude of each block, and its scale before rounding.
    scales : (blocks,)
    scaled : (n,)
        Each number before it was rounded to a code.
    codes : (n,)
    values : (n,)
        What codes and scales decode to, over G.
    error
        Norm of what is lost over that of the numbers; 0 of zeros.
    """

    amax: F32
    wanted: F32
    scales: U8
    scaled: F32
    codes: U8
    values: F32
    error: float

    @property
    def ties(self) -> NDArray[np.bool_]:
        """Whether each number lay halfway between two values of E2M1."""
        return np.isin(np.abs(self.scaled), _MIDDLES)

    @property
    def cut(self) -> NDArray[np.bool_]:
        """Whether each number was beyond 6."""
        return np.abs(self.scaled) > LARGEST_CODE


def whole_scale(way: Way, *, given: float = 1.0, largest: float | None) -> WholeScale:
    """Return the global scale of a way: of the tensor's largest magnitude, or as given.

    Without UE4M3 scales none follows from a magnitude.
    """
    if way.recipe.global_scale == "none":
        return WholeScale(1.0, 1.0, 0.0)
    if largest is None:
        g = np.float32(given)
        return WholeScale(float(g), float(np.float32(1) / g), 0.0)
    if way.scale_format is not ScaleFormat.UE4M3:
        return WholeScale(1.0, 1.0, 0.0)
    encode, decode = automatic(np.asarray(largest, np.float32), way.recipe)
    return WholeScale(float(encode), float(decode), largest)


def look(numbers: NDArray[Any], way: Way, scale: WholeScale) -> Seen:
    """Quantise numbers in one way, and keep what was on the way.

    Parameters
    ----------
    numbers : (n,)
        16 or 32 finite ones, float32, float16 or bfloat16.
    scale
        Of the tensor that they are of; its `largest` is 0 where G was given.
    """
    vec = way.vec_size
    wide = numbers.astype(np.float32)
    values = np.zeros(-(-wide.size // vec) * vec, np.float32)
    values[: wide.size] = wide
    rounded: list[tuple[F32, U8]] = []

    def keep(x: F32) -> U8:
        rounded.append((x.copy(), element(way.format).encode(x)))
        return rounded[-1][1]

    made = run_rule(
        way.recipe,
        Blocks(
            values=values.reshape(-1, vec),
            amax=largest_magnitudes(values, vec, way.recipe.nan == "drop"),
            encode=np.asarray(scale.encode, np.float32),
            decode=np.asarray(scale.decode, np.float32),
            one_level=False,
            largest=np.asarray(scale.largest, np.float32) if scale.largest else None,
            range=way.recipe.range,
            dtype=numbers.dtype.name,
            element=element(way.format),
            scale_format=way.scale_format,
            round=keep,
        ),
    )
    with np.errstate(all="ignore"):
        decoded = way.scale_format.decode(made.scales)[:, None].astype(np.float64)
        wider = decode_e2m1(made.codes) * decoded / np.float64(scale.encode)
        back = wider.astype(np.float32).ravel()[: wide.size]
    off = sum((float(b) - float(z)) ** 2 for b, z in zip(back, wide, strict=True))
    whole = sum(float(z) ** 2 for z in wide)
    return Seen(
        _amax(values, vec),
        made.wanted.astype(np.float32),
        made.scales,
        _scaled(rounded, made.codes)[: wide.size],
        made.codes.ravel()[: wide.size],
        back,
        sqrt(off / whole) if whole else 0.0,
    )


def _amax(values: F32, vec: int) -> F32:
    amax: F32 = np.abs(values).reshape(-1, vec).max(axis=-1)
    return amax


def _scaled(rounded: list[tuple[F32, U8]], codes: U8) -> F32:
    """Return what was rounded to the codes: of candidates, the one that was taken."""
    found = rounded[-1][0].copy()
    for x, made in rounded:
        taken = ((made & 7) == (codes & 7)).all(axis=-1)
        found[taken] = x[taken]
    return found.ravel()
