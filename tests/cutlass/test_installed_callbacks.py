"""The recorded order of callbacks is what the installed CUTLASS's kernels print."""

from __future__ import annotations

import json
import runpy
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from fp4ref.cutlass.toolchain import Toolchain
from fp4ref.errors import InputError

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def maker() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "conformance/record/callback_order.py"))


@pytest.mark.soak
@pytest.mark.parametrize("schedule", ["eager", "late"])
def test_cutlass_prints_the_order_as_recorded(
    tools: Toolchain, maker: dict[str, Any], schedule: str
) -> None:
    """A build of ten minutes, if there is none."""
    recorded = json.loads(maker["CALLBACKS"].read_text("utf-8"))
    if recorded["packages"]["nvidia-cutlass"] != metadata.version("nvidia-cutlass"):
        pytest.skip("another CUTLASS is installed than was recorded")
    assert maker["runs"](maker["said"](tools, schedule)) == recorded["runs"]


def test_the_file_is_the_makers(maker: dict[str, Any]) -> None:
    found = maker["CALLBACKS"].read_text("utf-8")
    assert maker["text"](json.loads(found)) == found


POLICY = "policy stages_c 4 tile_n 128"
LINES = [f"{warp} tma_store 0 0 0 0 {int(warp == 4)}" for warp in (4, 5, 6, 7)]


def test_a_run_is_read_warp_by_warp(maker: dict[str, Any]) -> None:
    loads = ["3 load_step 0 0 0 0 1", "3 load_step 1 0 0 0 1"]
    found = maker["runs"]("\n".join(["run C", POLICY, *LINES[::-1], *loads]))
    assert found == {
        "C": {
            "policy": {"stages_c": 4, "tile_n": 128},
            "load": ["load_step 0 0 0 1: 0 1"],
            "store": ["tma_store 0 0 0 1: 0"],
        }
    }


@pytest.mark.parametrize(
    "line", ["5 end 0 -1 -1 -1 -1", "6 tma_store 0 0 0 0 1", "7 tma_store 0 0 1 0 0"]
)
def test_store_warps_that_differ_are_no_record(
    maker: dict[str, Any], line: str
) -> None:
    lines = [each for each in LINES if each[0] != line[0]]
    with pytest.raises(InputError, match="C: the store warps differ"):
        maker["runs"]("\n".join(["run C", POLICY, *lines, line]))
