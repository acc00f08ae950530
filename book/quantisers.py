"""quantisers: the recipes, and what each makes of the same blocks."""

from __future__ import annotations

import re
import warnings

import numpy as np
from wording import row, stacked_table

from fp4ref.numerics.elements import BLOCKS
from fp4ref.tensors.quantize import quantize
from fp4ref.tensors.recipes import RECIPES
from fp4ref.tensors.recipes.recipe import Recipe

NBSP = "\N{NO-BREAK SPACE}"
_CODE = re.compile("`[^`]*`")

HEADS = ("recipe", "formula", "from")
STORED = {"encode": "G", "decode": "1/G", "none": "no global scale"}

BLOCKS_SHOWN = (
    ("zeros", ()),
    ("0.005 everywhere", (0.005,) * 16),
    ("11.25, 4.6875", (11.25, 4.6875)),
    ("6, 5", (6.0, 5.0)),
    ("7, 1", (7.0, 1.0)),
)
"""What a block holds, zeros after it."""


def cells(recipe: Recipe) -> tuple[str, ...]:
    """A row of the table of recipes."""
    stored = STORED[recipe.global_scale]
    return (
        f"`{recipe.name}`",
        f"`{recipe.summary}`. Stores {stored}. NaN: {recipe.nan}",
        f"{recipe.source}, {recipe.version}. Beside it ran: {recipe.beside}",
    )


def shown(recipe: Recipe, values: tuple[float, ...]) -> str:
    """Scale byte, and the first two codes with their values."""
    format = recipe.formats[0]
    x = np.zeros((1, BLOCKS[format].vec_size), np.float32)
    x[0, : len(values)] = values
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        q = quantize(x, format, recipe.name)
    first, second = q.dequantize()[0, :2]
    codes = f"{q.codes[0, 0]:X} {q.codes[0, 1]:X}"
    return f"`{q.scales[0, 0]:02X}: {codes}` ({first:.4g}, {second:.4g})"


def page() -> str:
    """Both tables."""
    lines = [stacked_table([HEADS, *map(cells, RECIPES.values())])]
    heads = ("recipe", *(what for what, _ in BLOCKS_SHOWN))
    lines += ["", row(*heads), row(*["---"] * len(heads))]
    for recipe in RECIPES.values():
        made = (shown(recipe, values) for _, values in BLOCKS_SHOWN)
        kept = (_CODE.sub(lambda found: found[0].replace(" ", NBSP), m) for m in made)
        lines.append(row(f"`{recipe.name}`", *kept))
    return "\n".join(lines) + "\n"
