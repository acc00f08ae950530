"""The recorded plans and orders are what the installed CUTLASS says."""

from __future__ import annotations

import json
import runpy
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from fp4ref.cutlass.toolchain import Toolchain

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def family() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "conformance/record/family.py"))


@pytest.mark.soak
@pytest.mark.parametrize("program", ["sm100_mainloop", "sm100_raster", "sm90_mainloop"])
def test_a_host_program_says_what_is_recorded(
    tools: Toolchain, family: dict[str, Any], program: str
) -> None:
    text = family["FAMILY"].read_text("utf-8")
    recorded = json.loads(text)
    assert family["text"](recorded) == text
    if recorded["packages"]["nvidia-cutlass"] != metadata.version("nvidia-cutlass"):
        pytest.skip("another CUTLASS is installed than was recorded")
    assert family["printed"](tools, program) == recorded[program]


def test_every_program_is_recorded(family: dict[str, Any]) -> None:
    recorded = json.loads(family["FAMILY"].read_text("utf-8"))
    assert set(recorded) == {"packages", *family["PROGRAMS"]}
    sources = (ROOT / "conformance/record").glob("*.cpp")
    assert {source.stem for source in sources} == set(family["PROGRAMS"])
