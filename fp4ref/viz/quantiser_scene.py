"""quantiser_scene: a few values through one recipe, and through all of them."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fp4ref.arguments import require_array, require_choice, require_number
from fp4ref.errors import InputError
from fp4ref.numerics import ScaleFormat, decode_e2m1
from fp4ref.numerics.reciprocal import rcp_approx_ftz
from fp4ref.tensors.one_block import WAYS, Seen, Way, look, whole_scale
from fp4ref.tensors.quantize import WholeScale
from fp4ref.tensors.recipes.recipe import Recipe
from fp4ref.viz.packet import Header
from fp4ref.viz.player import Player
from fp4ref.viz.strings import say
from fp4ref.viz.text import table_text

COUNTS: Final = (16, 32)
MOST_POWER: Final = 20
_LARGEST_EXPONENT: Final = 100
"""Of G and its inverse: far from the ends of float32, so that no power of two tells."""


def quantiser(
    values: npt.ArrayLike | None = None,
    *,
    recipe: str = "cutlass",
    global_scale: float = 1.0,
    largest: float | None = None,
    view: str = "quantiser",
) -> Player:
    """Return the quantiser microscope: a block by one recipe, and by every recipe.

    Parameters
    ----------
    values
        16 or 32 numbers; 16 with ties and an outlier by default. float16 and bfloat16
        stay so when they are moved.
    recipe
        A name of `fp4ref.tensors.one_block.WAYS`: a recipe, ``"cutlass UE8M0"``, ...
    global_scale
        G, for all recipes that have one.
    largest
        The largest magnitude of the tensor, of which each recipe makes its own G.
    view
        ``"quantiser"`` (one recipe, on the E2M1 line) or ``"recipes"``.

    Raises
    ------
    InputError
        Not 16 or 32 finite numbers, no such recipe, or a scale that is not positive.
    """
    require_choice(recipe, "recipe", tuple(WAYS), gap="recipe")
    require_choice(view, "view", ("quantiser", "recipes"))
    numbers = _numbers(values)
    given = _positive("global_scale", global_scale)
    if largest is not None:
        if global_scale != 1.0:
            raise InputError("largest and global_scale: G follows from one of them")
        largest = _positive("largest", largest)
    scales = {n: whole_scale(w, given=given, largest=largest) for n, w in WAYS.items()}
    seen = {name: look(numbers, way, scales[name]) for name, way in WAYS.items()}
    power = MOST_POWER if _is_ordinary(scales.values()) else 0
    header: Header = {
        "title": say("title.quantiser"),
        "quantiser": {
            "values": [float(v) for v in numbers],
            "type": numbers.dtype.name,
            "way": recipe,
            "ways": [_way(way, scales[name]) for name, way in WAYS.items()],
            "rcp": _reciprocal_offsets([scale.encode for scale in scales.values()]),
            "powers": [-power, power],
        },
    }
    texts = {
        "quantiser": _one_text(numbers, recipe, seen[recipe]),
        "recipes": _all_text(numbers, seen),
    }
    return Player(
        header,
        view=view,
        views=tuple(texts),
        text=lambda _, shown: texts[shown],
    )


def _numbers(values: npt.ArrayLike | None) -> npt.NDArray[Any]:
    """Return finite numbers in the type they have, float32 if that is no narrow one."""
    if values is None:
        made = np.linspace(-6, 6, 16).round(2)
        made[[1, 3, 8, 12]] = -11.25, 2.5, 0.25, 4.6875
        values = made
    array = require_array(values, "values")
    if not array.size or array.dtype.kind == "c":
        raise InputError(f"values: {values!r:.60} is no list of numbers")
    narrow = array.dtype.name in ("float16", "bfloat16")
    with np.errstate(over="ignore"):
        numbers = array if narrow else array.astype(np.float64).astype(np.float32)
    numbers = numbers.ravel()
    if numbers.size not in COUNTS or not np.isfinite(numbers).all():
        raise InputError(
            f"values: {numbers.size} of them; need 16 or 32 finite numbers"
        )
    return numbers


def _positive(name: str, value: object) -> float:
    """Return a positive number that float32 holds, with its inverse."""
    number = require_number(value, name)
    with np.errstate(all="ignore"):
        held = np.float32(number)
        if not (0 < held < np.inf and 0 < np.float32(1) / held < np.inf):
            raise InputError(
                f"{name}: {number!r}; need a positive number that is finite in float32"
            )
    return float(held)


def _is_ordinary(scales: Any) -> bool:
    return all(abs(np.log2(s.encode)) < _LARGEST_EXPONENT for s in scales)


def _way(way: Way, scale: WholeScale) -> dict[str, Any]:
    """Return what the page needs of a way; its rule is there by the recipe's name."""
    recipe: Recipe = way.recipe
    return {
        "name": way.name,
        "rule": recipe.name,
        "scale": way.scale_format.name,
        "vec": way.vec_size,
        "range": recipe.range,
        "encode": scale.encode,
        "decode": scale.decode,
        "largest": scale.largest,
        "fixed": recipe.global_scale == "none",
        "summary": recipe.summary,
        "source": recipe.source,
    }


def _reciprocal_offsets(encodes: list[float]) -> dict[str, int]:
    """Return rcp.approx less the rounded quotient, by the bits of the significand.

    Of each G and of each scale times ``rcp(G)``: all that the serving libraries invert,
    whatever power of two is in G.
    """
    scales = ScaleFormat.UE4M3.decode(np.arange(1, 0x7F, dtype=np.uint8))
    found = {}
    for g in set(encodes):
        inverse = rcp_approx_ftz(np.array([g], np.float32))
        for x in np.concatenate([np.array([g], np.float32), scales * inverse, inverse]):
            bits = int(x.view(np.uint32)) & 0x7FFFFF
            one = np.array([bits | 0x3F800000], np.uint32).view(np.float32)
            near = rcp_approx_ftz(one).view(np.uint32).astype(np.int64)
            exact = (np.float32(1) / one).view(np.uint32).astype(np.int64)
            found[str(bits)] = int((near - exact)[0])
    return found


def _one_text(numbers: npt.NDArray[Any], way: str, seen: Seen) -> str:
    scales = "; ".join(_scale_texts(way, seen))
    head = say(
        "text.quantiser", count=numbers.size, way=way, scales=scales, error=seen.error
    )
    levels = decode_e2m1(seen.codes)
    rows: list[list[Any]] = [
        [i, *(f"{v:g}" for v in (z, s)), f"{c:#x}", f"{level:g}", f"{b:g}"]
        for i, (z, s, c, level, b) in enumerate(
            zip(
                numbers.astype(np.float32),
                *(seen.scaled, seen.codes, levels, seen.values),
                strict=True,
            )
        )
    ]
    return table_text(head, say("text.quantiser.columns").split("|"), rows)


def _scale_texts(way: str, seen: Seen) -> list[str]:
    decoded = WAYS[way].scale_format.decode(seen.scales)
    return [
        say("text.quantiser.scale", amax=a, wanted=w, scale=int(s), decoded=d)
        for a, w, s, d in zip(seen.amax, seen.wanted, seen.scales, decoded, strict=True)
    ]


def _all_text(numbers: npt.NDArray[Any], seen: dict[str, Seen]) -> str:
    rows: list[list[Any]] = [
        [
            name,
            " ".join(f"{w:.6g}" for w in each.wanted),
            " ".join(f"{s:#04x}" for s in each.scales),
            "".join(f"{c:X}" for c in each.codes),
            f"{each.error:.2%}",
            " ".join(map(str, np.flatnonzero(each.ties))) or say("no"),
            " ".join(map(str, np.flatnonzero(each.cut))) or say("no"),
        ]
        for name, each in seen.items()
    ]
    head = say("text.recipes", count=numbers.size, ways=len(seen))
    return table_text(head, say("text.recipes.columns").split("|"), rows)
