"""What contributors read names files, targets and rows that are there."""

from __future__ import annotations

import re
import tomllib
from dataclasses import asdict
from pathlib import Path

import pytest

from fp4ref.evidence.fidelity import RULES
from fp4ref.gemm.ladder import step

ROOT = Path(__file__).parents[1]
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
RECIPES = (ROOT / "book/recipes.md").read_text("utf-8")
FRAME = (ROOT / "book/add_a_frame.md").read_text("utf-8")
PAGES = CONTRIBUTING + RECIPES + FRAME
MAKEFILE = (ROOT / "Makefile").read_text("utf-8")
FOLDERS = "fp4ref|kernel|tests|probes|book|docs"


@pytest.mark.parametrize(
    "path", sorted(set(re.findall(rf"\b((?:{FOLDERS})/[\w./]*\w)", PAGES)))
)
def test_every_path_exists(path: str) -> None:
    if "NN" not in path:
        assert (ROOT / path).exists()


@pytest.mark.parametrize("target", sorted(set(re.findall(r"\bmake ([a-z]+)\b", PAGES))))
def test_every_make_target_exists(target: str) -> None:
    assert re.search(rf"^{target}:", MAKEFILE, re.MULTILINE)


@pytest.mark.parametrize(
    "module", sorted(set(re.findall(r"python -m (fp4ref[\w.]+)", PAGES)))
)
def test_every_module_exists(module: str) -> None:
    path = ROOT / module.replace(".", "/")
    assert path.with_suffix(".py").is_file() or (path / "__main__.py").is_file()


def test_the_row_of_the_recipe_is_one_of_the_table() -> None:
    (text,) = re.findall(r"(?ms)^   ```toml\n(   \[\[rule\]\].*?)^   ```", RECIPES)
    (row,) = tomllib.loads(re.sub(r"(?m)^   ", "", text))["rule"]
    rule = next(rule for rule in RULES if rule.id == row["id"])
    assert row["mutation"] == rule.to_dict()["mutation"]
    assert row["checked_by"] == rule.checked_by
    assert row["evidence"] == rule.evidence.name


def test_lint_is_what_test_runs_first() -> None:
    assert re.search(r"^test: lint\n\t\S+ -m pytest ", MAKEFILE, re.MULTILINE)
    assert "entry: make --silent lint" in (ROOT / ".pre-commit-config.yaml").read_text()


def test_it_fits_on_two_screens() -> None:
    assert len(CONTRIBUTING.splitlines()) <= 80


def test_each_recipe_is_linked_and_the_ladders_is_a_step() -> None:
    titles = re.findall(r"^## (Add .+)$", RECIPES, re.MULTILINE)
    linked = re.findall(r"recipes\.md#(add-[\w-]+)\)", CONTRIBUTING)
    assert {title.lower().replace(" ", "-") for title in titles} >= set(linked)
    assert {"add-a-loader", "add-a-step-of-the-ladder"} <= set(linked)
    (text,) = re.findall(r"(?ms)^   ```toml\n(   \[k-groups\].*?)^   ```", RECIPES)
    shown = tomllib.loads(re.sub(r"(?m)^   ", "", text))["k-groups"]
    made = asdict(step("k-groups"))
    assert shown | {"name": "k-groups", "shape": tuple(shown["shape"])} == made
