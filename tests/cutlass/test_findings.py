"""What the order of accesses says of other people's kernels is the recorded list.

72b runs here; the others take builds or Triton and are soak tests.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "conformance"))

import findings

from fp4ref.hardware.order.book import Book
from fp4ref.hardware.order.rules import Failure

KERNELS = {kernel.name: kernel for kernel in findings.kernels()}
RECORD = findings.recorded()
ROWS = {row["kernel"]: row for row in RECORD["kernels"]}


def without_counts(row: dict[str, Any], ordering: str) -> list[dict[str, Any]]:
    return [
        {name: value for name, value in found.items() if name != "count"}
        for found in row[ordering]["findings"]
    ]


def check(name: str) -> None:
    """Another compiler may unroll otherwise: counts hold for the recorded versions."""
    row, known = findings.record(KERNELS[name]), ROWS[name]
    if findings.versions().items() <= RECORD["versions"].items():
        assert row == known
    for ordering in findings.ORDERINGS:
        assert without_counts(row, ordering) == without_counts(known, ordering)
        assert row[ordering]["verdict"] == known[ordering]["verdict"]
    assert row["stops_with"] == known["stops_with"]


def test_the_findings_in_72b_are_the_known_ones(example_72b):
    check("CUTLASS 72b")


@pytest.mark.soak
@pytest.mark.parametrize(
    "name", [name for name in KERNELS if name[:3] != "Tri" and name[-3:] != "72b"]
)
def test_the_findings_in_the_other_examples_are_the_known_ones(tools, name):
    check(name)


@pytest.mark.soak
@pytest.mark.outside
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", [name for name in KERNELS if name[:3] == "Tri"])
def test_the_findings_in_tritons_kernels_are_the_known_ones(name, monkeypatch):
    pytest.importorskip("triton", reason="needs triton 3.9: pip install triton")
    tests = Path(__file__).parents[1]
    monkeypatch.syspath_prepend(str(tests / "ptx"))
    check(name)


def test_the_schedule_has_no_influence_on_the_list(example_72b, monkeypatch):
    monkeypatch.setattr(findings, "SCHEDULE", "eager")
    name = "CUTLASS 72b"
    assert (
        findings.judged(KERNELS[name], "ptx")["findings"]
        == (ROWS[name]["ptx"]["findings"])
    )


def test_a_wrong_rule_changes_the_list(example_72b, monkeypatch):
    """If a copy came after an MMA by itself, no pipeline order would be missing."""

    def wrong(book, first, second):
        pair = {first.operation, second.operation}
        return first.actor is second.actor and pair <= {"tcgen05.mma", "tcgen05.cp"}

    monkeypatch.setattr(Book, "is_pipelined", wrong)
    name = "CUTLASS 72b"
    found = findings.judged(KERNELS[name], "ptx")
    classes = {each["failure"] for each in found["findings"]}
    known = {each["failure"] for each in ROWS[name]["ptx"]["findings"]}
    assert known - classes == {Failure.PIPELINE.value.name}
