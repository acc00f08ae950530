"""recipes: the ways to quantise that have a name, and whose they are."""

from __future__ import annotations

from dataclasses import asdict

from rich.console import Console
from rich.table import Table

from fp4ref.commands.options import Json
from fp4ref.commands.printing import print_json
from fp4ref.tensors.recipes import RECIPES
from fp4ref.tensors.recipes.recipe import Recipe


def recipes_command(as_json: Json = False) -> None:
    """List the quantisation recipes: formula, source, what ran beside it."""
    if as_json:
        print_json([_values(recipe) for recipe in RECIPES.values()])
        return
    console = Console()
    for recipe in RECIPES.values():
        table = Table(box=None, show_header=False)
        table.add_column(no_wrap=True)
        table.add_column(overflow="fold")
        for label, text in _lines(recipe):
            table.add_row(label, text)
        console.print(recipe.name, table, "", sep="\n", highlight=False, markup=False)


def _lines(recipe: Recipe) -> tuple[tuple[str, str], ...]:
    return (
        ("formula", recipe.summary),
        ("formats", " ".join(recipe.formats)),
        ("NaN", recipe.nan),
        ("source", f"{recipe.source}, {recipe.version}"),
        ("original run beside", recipe.beside),
    )


def _values(recipe: Recipe) -> dict[str, object]:
    values = asdict(recipe)
    del values["rule"]
    values["scale_formats"] = [each.value for each in recipe.scale_formats]
    return values
