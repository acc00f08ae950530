"""recipes: how libraries quantise, by name; one idea a file.

A new recipe is a `Recipe` in a module here and the module in the list below.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from fp4ref.tensors.recipes import (
    compressed_tensors,
    cutlass,
    four_over_six,
    modelopt,
    mx,
    serving,
    torchao,
    transformer_engine,
)
from fp4ref.tensors.recipes.recipe import Recipe

_MODULES: Final = (
    *(cutlass, transformer_engine, serving, torchao, modelopt, compressed_tensors),
    *(four_over_six, mx),
)

RECIPES: Final[Mapping[str, Recipe]] = MappingProxyType(
    {recipe.name: recipe for module in _MODULES for recipe in module.RECIPES}
)
"""Every recipe by name."""
