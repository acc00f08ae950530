"""The tables of recipes have every recipe, with the bytes that others report."""

from __future__ import annotations

from pathlib import Path

import quantisers

from fp4ref.tensors.recipes import RECIPES

PAGE = Path(__file__).parents[2] / "book" / "quantisers.md"


def test_each_recipe_has_a_row_in_both_tables() -> None:
    lines = quantisers.page().splitlines()
    for name in RECIPES:
        for start in (f"* - `{name}`", f"| `{name}` |"):
            assert sum(line.startswith(start) for line in lines) == 1


def test_the_bytes_are_those_of_the_reports() -> None:
    """B07, B10 and B77."""
    (zeros, tiny, tie, six, _) = (values for _, values in quantisers.BLOCKS_SHOWN)
    shown = quantisers.shown
    assert shown(RECIPES["torchao"], zeros).startswith("`08: 0 0`")
    assert shown(RECIPES["modelopt"], tiny) == "`01: 5 5` (0.005859, 0.005859)"
    assert shown(RECIPES["modelopt"], tie).startswith("`3F: 7 4`")
    assert shown(RECIPES["cutlass"], tie).startswith("`3F: 7 5`")
    four = RECIPES["four_over_six_mae_448_tie_six"]
    assert shown(four, six) == "`3C: 6 5` (6, 4.5)"


def test_the_page_names_what_the_code_has() -> None:
    text = PAGE.read_text("utf-8")
    for word in ("row_major", "8x4", "weight_scale_2", "weight_global_scale"):
        assert f"`{word}`" in text
