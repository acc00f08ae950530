"""A node of a notebook, as the book has it: its class and its struct in one cell."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fp4ref
from fp4ref.cuda_kernel import choices
from fp4ref.cuda_kernel.build import nvrtc_version

RECIPES = Path(__file__).parents[2] / "book" / "recipes.md"


@pytest.fixture(scope="module")
def cell() -> dict[str, Any]:
    """What the page's cell leaves behind."""
    blocks = re.findall(r"(?ms)^```python\n(.*?)^```", RECIPES.read_text("utf-8"))
    (text,) = (block for block in blocks if "class Square" in block)
    found: dict[str, Any] = {"__name__": "a_cell"}
    exec(compile(text, "a cell", "exec"), found)
    return found


def test_the_emulator_computes_it(cell: dict[str, Any]) -> None:
    values = [each.value for each in cell["run"].explain(m=5, n=7).nodes]
    names = [each.node for each in cell["run"].explain(m=5, n=7).nodes]
    assert names == ["Alpha", "AccFetch", "Multiply", "Square"]
    assert np.float32(values[3]) == np.float32(values[2]) ** 2


def test_its_struct_is_in_the_kernel(cell: dict[str, Any]) -> None:
    header = choices.headers(cell["config"])[choices.PARTS]
    assert "struct Square : Unary<A> {" in header
    assert "using Fusion = Square<Multiply<Alpha, AccFetch>>;" in header
    if nvrtc_version() is None:
        pytest.skip("needs NVRTC: pip install 'fp4ref[cuda]'")
    kernel = fp4ref.run(
        cell["a"], cell["b"], config=cell["config"], backend="ptx", trace=False
    )
    assert np.array_equal(kernel.d, cell["run"].d)
