"""What a launch asks of an epilogue: each answer is CUTLASS's own."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from typer.main import get_command

from fp4ref.commands import app
from fp4ref.errors import InputError
from fp4ref.gemm.epilogue_builder import (
    EpilogueLaunch,
    EpilogueRequest,
    build_epilogue,
)

ROOT = Path(__file__).parents[2]
RECORD: dict[str, Any] = json.loads(
    (ROOT / "tests/data/epilogues.json").read_text("utf-8")
)["epilogues"]
ASKED = {
    line: said for line, said in RECORD.items() if "can_implement" in said and said
}
HEADER = (ROOT / "conformance/record/epilogue_values.h").read_text("utf-8")
PROBLEMS = [
    tuple(map(int, found))
    for found in re.findall(
        r"\{(\d+), (\d+), (\d+)\}", HEADER.split("kProblems[] = ")[1].split(";")[0]
    )
]
COMMANDS = get_command(app)
LOADED = EpilogueRequest(arch="sm100", tile=(128, 128, 256), c="f32", d="nvfp4")


def said(line: str, problem: tuple[int, ...], beta: float) -> dict[str, Any]:
    words = ["--problem", ",".join(map(str, problem)), "--beta", str(beta), "--json"]
    result = CliRunner().invoke(COMMANDS, ["epilogue", *shlex.split(line), *words])
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.output)
    return found


def test_the_record_tells_the_problems_apart() -> None:
    assert len(PROBLEMS) == 8
    assert len({each["can_implement"] for each in ASKED.values()}) >= 8
    assert len(ASKED) >= 70


@pytest.mark.parametrize("line", ASKED)
def test_a_launch_finds_what_cutlass_finds(line: str) -> None:
    recorded = ASKED[line]
    can = [said(line, each, 0)["launch"]["can_implement"] for each in PROBLEMS]
    assert "".join("01"[each] for each in can) == recorded["can_implement"]
    asked = [said(line, (256, 384, 3), beta) for beta in (0, 1)]
    found = asked[0]["launch"]
    assert found["workspace_nbytes"] == recorded["workspace_nbytes"]
    if "load_increment" in recorded:
        subtiles = asked[0]["values"]["subtiles"]["value"]
        assert subtiles == recorded["load_increment"] == recorded["store_increment"]
    if "--callbacks" in line or "is_C_load_needed" not in recorded:
        return
    for name in ("is_C_load_needed", "is_producer_load_needed"):
        assert "".join("01"[each["launch"][name]] for each in asked) == recorded[name]


def test_a_refusal_names_the_matrix_and_the_nearest_size() -> None:
    launch = EpilogueLaunch(build_epilogue(LOADED), 128, 34)
    assert len(launch.reasons) == 2
    assert "D of e2m1 is N-major" in launch.reasons[0]
    assert "The nearest N is 64" in launch.reasons[0]
    assert "C of f32" in launch.reasons[1]
    assert "The nearest N is 36" in launch.reasons[1]


def test_a_beta_that_is_nan_loads_c() -> None:
    epilogue = build_epilogue(LOADED)
    assert EpilogueLaunch(epilogue, 128, 128, beta=float("nan")).is_c_load_needed
    assert not EpilogueLaunch(epilogue, 128, 128, beta=-0.0).is_c_load_needed


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        ({"m": 0, "n": 8}, "m: 0"),
        ({"m": 8, "n": 1 << 31}, "n: 2147483648"),
        ({"m": 8, "n": 8, "batches": 1.5}, "batches: 1.5"),
        ({"m": 8, "n": 8, "beta": "one"}, "beta='one'"),
    ],
)
def test_what_is_no_problem_is_refused(problem: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=re.escape(words)):
        EpilogueLaunch(build_epilogue(LOADED), **problem)


def test_arrays_of_pointers_have_no_problem_on_the_host() -> None:
    request = EpilogueRequest(
        arch="sm90", tile=(64, 64, 64), schedule="PtrArrayTmaWarpSpecialized"
    )
    with pytest.raises(InputError, match="known on the GPU alone"):
        EpilogueLaunch(build_epilogue(request), 64, 64)
