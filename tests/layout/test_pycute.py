"""Equivalence with pycute, NVIDIA's Python model of CuTe layouts."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from make_pycute_golden import GOLDEN, make_cases
from random_layouts import image

from fp4ref import layout as fp4ref_layout
from fp4ref.errors import LayoutError
from fp4ref.layout import Layout, coalesce

# Same modes and strides, not only the same function. Elsewhere pycute keeps a stride
# for extents of 1 where fp4ref writes 0.
SAME_NOTATION = {"coalesce", "complement", "left_inverse"}


def to_layout(pair: list[Any]) -> Layout:
    def tuples(t: Any) -> Any:
        return tuple(map(tuples, t)) if isinstance(t, (list, tuple)) else t

    return Layout(tuples(pair[0]), tuples(pair[1]))


def check(case: dict[str, Any]) -> str:
    """Compare one case; say how it came out."""
    op = getattr(fp4ref_layout, case["op"])
    arguments = [
        to_layout(argument) if isinstance(argument, (list, tuple)) else argument
        for argument in case["arguments"]
    ]
    if "refuse" in case:
        with pytest.raises(LayoutError):
            op(*arguments)
        return "refused"
    ours, theirs = op(*arguments), to_layout(case["answer"])
    if case["op"] == "right_inverse" and ours.size > theirs.size:
        # pycute stops at a stride 0 or a repeated stride; fp4ref steps over it.
        assert 0 in dict(map(reversed, arguments[0].flat_modes)) or repeats(
            arguments[0]
        )
        assert image(ours)[: theirs.size] == image(theirs)
        return "longer right inverse"
    assert image(ours) == image(theirs)
    assert ours.shape == theirs.shape
    assert ours == theirs or case["op"] not in SAME_NOTATION
    return "same notation" if ours == theirs else "same function"


def repeats(a: Layout) -> bool:
    strides = [d for _, d in coalesce(a).flat_modes]
    return len(set(strides)) < len(strides)


def test_golden_answers_of_pycute() -> None:
    cases = json.loads(GOLDEN.read_text())["cases"]
    outcomes = Counter(map(check, cases))
    assert len(cases) >= 1000
    assert outcomes["refused"] == 90
    assert outcomes["longer right inverse"] < 10
    assert outcomes["same notation"] > 800


@pytest.mark.rotating(1)
@pytest.mark.outside
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_fresh_answers_of_pycute(seed: int) -> None:
    pytest.importorskip(
        "pycute", reason="needs pycute (pip: nvidia-cutlass, --no-deps)"
    )
    for case in make_cases(seed, per_operation=60, refusals=10):
        check(case)
