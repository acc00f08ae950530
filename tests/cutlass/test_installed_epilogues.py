"""The recorded epilogues are what the installed CUTLASS's builder makes."""

from __future__ import annotations

import json
import runpy
from datetime import date
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from fp4ref.cutlass.toolchain import Toolchain

ROOT = Path(__file__).parents[2]
AT_ONCE = 3
"""Epilogues that are built each day: one program, some ten seconds."""


@pytest.fixture(scope="module")
def maker() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "conformance/record/epilogues.py"))


@pytest.fixture(scope="module")
def recorded(maker: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(maker["EPILOGUES"].read_text("utf-8"))
    return found


def same_cutlass(recorded: dict[str, Any]) -> None:
    if recorded["packages"]["nvidia-cutlass"] != metadata.version("nvidia-cutlass"):
        pytest.skip("another CUTLASS is installed than was recorded")


LAST = 120
"""No fewer lines than are recorded, for the long run."""


def test_every_line_is_recorded(
    maker: dict[str, Any], recorded: dict[str, Any]
) -> None:
    assert list(recorded["epilogues"]) == maker["asked"]()
    assert len(recorded["epilogues"]) <= LAST
    assert maker["text"](recorded) == maker["EPILOGUES"].read_text("utf-8")


def test_three_epilogues_of_the_day_are_built_as_recorded(
    tools: Toolchain, maker: dict[str, Any], recorded: dict[str, Any]
) -> None:
    same_cutlass(recorded)
    built = [line for line, said in recorded["epilogues"].items() if type(said) is dict]
    first = date.today().toordinal() * AT_ONCE
    lines = [built[(first + i) % len(built)] for i in range(AT_ONCE)]
    found = maker["printed"](tools, lines)
    assert found == {line: recorded["epilogues"][line] for line in lines}


@pytest.mark.soak
@pytest.mark.parametrize("start", range(0, LAST, 20))
def test_every_epilogue_is_built_or_refused_as_recorded(
    tools: Toolchain, maker: dict[str, Any], recorded: dict[str, Any], start: int
) -> None:
    same_cutlass(recorded)
    for first in range(start, start + 20, 10):
        lines = list(recorded["epilogues"])[first : first + 10]
        found = maker["printed"](tools, lines)
        assert found == {line: recorded["epilogues"][line] for line in lines}
