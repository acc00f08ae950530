"""Every case that others reported has a test named by its number."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
CASES = [*range(1, 45), *range(68, 72), *range(73, 78), 79, 80, 82, *range(84, 87)]
"""B01 to B44 are cases of numbers, layouts, pipelines, MMA and toolchain; the later
ones were tried on an early version. The numbers between were of other subjects."""


@cache
def named() -> dict[int, list[tuple[str, ast.FunctionDef]]]:
    """Tests by the number in their names, each with its file."""
    found: dict[int, list[tuple[str, ast.FunctionDef]]] = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_b"):
                digits = node.name[6:8]
                if digits.isdigit():
                    where = str(path.relative_to(TESTS))
                    found.setdefault(int(digits), []).append((where, node))
    return found


def can_fail(test: ast.FunctionDef) -> bool:
    """Whether it asserts, expects an error, or leaves that to a function's check."""
    calls = [ast.unparse(n.func) for n in ast.walk(test) if isinstance(n, ast.Call)]
    expects = (
        "pytest.raises",
        "pytest.warns",
        "assert_bits_equal",
        "np.testing.assert",
    )
    return any(isinstance(n, ast.Assert) for n in ast.walk(test)) or any(
        call.startswith(expects) for call in calls
    )


def daily(test: ast.FunctionDef) -> bool:
    marks = " ".join(map(ast.unparse, test.decorator_list))
    return "mark.soak" not in marks and "mark.skip(" not in marks


@pytest.mark.parametrize("number", CASES)
def test_a_case_has_a_test_of_its_number(number: int) -> None:
    tests = named().get(number, [])
    assert any(daily(test) for _, test in tests), f"B{number:02}: {tests}"
    for where, test in tests:
        assert can_fail(test), f"{where}: {test.name}"


def test_no_test_names_a_case_that_is_not_there() -> None:
    assert set(named()) <= set(CASES)
