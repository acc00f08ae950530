"""recipes: the ways to quantise that have a name, and whose they are."""

from __future__ import annotations

from dataclasses import asdict

from rich.console import Console

from fp4ref.commands.options import Json
from fp4ref.commands.printing import print_json, print_table
from fp4ref.tensors.recipes import RECIPES
from fp4ref.tensors.recipes.recipe import Recipe


def recipes_command(as_json: Json = False) -> None:
    """List the quantisation recipes: formula, source, what ran beside it."""
    if as_json:
        print_json([_values(recipe) for recipe in RECIPES.values()])
        return
    headings = ("recipe", "formula", "formats", "NaN", "source", "version", "beside")
    rows = [
        (r.name, r.summary, " ".join(r.formats), r.nan, r.source, r.version, r.beside)
        for r in RECIPES.values()
    ]
    print_table(Console(), headings, rows)


def _values(recipe: Recipe) -> dict[str, object]:
    values = asdict(recipe)
    del values["rule"]
    values["scale_formats"] = [each.value for each in recipe.scale_formats]
    return values
