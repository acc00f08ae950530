"""`fp4ref recipes`: every recipe, its formula and whether the original ran."""

from __future__ import annotations

import json

from click.testing import CliRunner
from typer.main import get_command

from fp4ref.commands import app
from fp4ref.tensors.recipes import RECIPES

COMMANDS = get_command(app)


def said(*words: str) -> str:
    result = CliRunner().invoke(COMMANDS, ["recipes", *words])
    assert result.exit_code == 0, result.output
    return result.output


def test_every_recipe_is_listed_within_80_columns() -> None:
    lines = said().splitlines()
    assert [line for line in lines if line in RECIPES] == list(RECIPES)
    assert max(map(len, lines)) <= 80
    for label in ("formula", "formats", "NaN", "source", "original run beside"):
        assert sum(line.startswith(f" {label} ") for line in lines) == len(RECIPES)


def test_json_has_the_same_and_the_versions() -> None:
    found = json.loads(said("--json"))
    assert [each["name"] for each in found] == list(RECIPES)
    assert all(each["version"] and each["beside"] for each in found)
