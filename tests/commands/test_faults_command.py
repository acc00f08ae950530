"""fp4ref faults: the list, a riddle, its answer, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from typer.testing import CliRunner

from fp4ref.commands import app
from fp4ref.evidence.faults import GALLERY, fault

NAME = "expect-forgotten"


def said(*words: str) -> Any:
    return CliRunner().invoke(app, ["faults", *words], env={"COLUMNS": "200"})


def test_the_list_has_every_mistake() -> None:
    result = said()
    assert result.exit_code == 0
    for name in GALLERY:
        assert name in result.stdout
    rows = json.loads(said("--json").stdout)
    assert [row["name"] for row in rows] == list(GALLERY)
    assert {"symptom", "cause", "remedy", "forms"} <= set(rows[0])


def test_a_riddle_hides_its_answer() -> None:
    each, result = fault(NAME), said(NAME)
    assert result.exit_code == 0
    assert each.symptom in result.stdout
    assert "DeadlockError" in result.stdout
    assert "1 of 1 arrivals pending" in result.stdout
    for hidden in (each.cause, each.remedy, each.title):
        assert hidden not in result.stdout


def test_a_mistake_that_was_reported_names_the_report() -> None:
    assert "(NVIDIA/cutlass#2404)" in said("producer-parity").stdout
    assert "seen in" not in said("expect-too-few").stdout


def test_the_answer_has_cause_remedy_and_line() -> None:
    each, result = fault(NAME), said(NAME, "--answer")
    change = each.forms["emulator"].change
    for shown in (each.cause, each.remedy, change.line, change.right, change.wrong):
        assert shown in result.stdout


def test_json_has_the_report_and_the_answer() -> None:
    found = json.loads(said(NAME, "--json", "--schedule", "late").stdout)
    assert found["cause"] == fault(NAME).cause
    assert (found["backend"], found["schedule"]) == ("emulator", "late")
    assert found["outcome"]["fault"]["type"] == "DeadlockError"
    assert found["outcome"]["fault"]["edges"]
    assert "fp4ref/gemm/mma_warp.py:" in found["outcome"]["places"][0]
    compared = json.loads(said("scale-columns", "--json").stdout)["outcome"]
    assert compared["difference"]["event"].startswith("accumulator at m 0")
    assert "fault" not in compared


def test_a_small_program_runs_as_ptx() -> None:
    result = said("wait-on-the-peers-barrier", "--backend", "ptx", "--schedule", "3")
    assert result.exit_code == 0
    assert "ClusterFault" in result.stdout
    assert "programs/pair.ptx:" in result.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["expect-forgoten"], "the nearest name is expect-forgotten"),
        (["mma-by-every-lane", "--backend", "emulator"], "--backend ptx"),
        ([NAME, "--backend", "device"], "emulator"),
        (
            [NAME, "--schedule", "soon"],
            "say 'eager', 'late', 'timed' or an integer seed",
        ),
        (["--answer"], "name a mistake too"),
        (["--backend", "ptx"], "name a mistake too"),
    ],
)
def test_what_cannot_be_shown_is_a_sentence(words: list[str], message: str) -> None:
    result = said(*words)
    assert result.exit_code == 2
    assert message in result.output + (result.stderr or "")
