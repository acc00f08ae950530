"""edges: what an H200 and compute-sanitizer refuse, the machine refuses too."""

from __future__ import annotations

import pytest
from recordings import differences

from probes import sanitizer
from probes.probe import probes
from probes.transcript import load


def test_what_is_a_fault_here_and_runs_on_the_card_is_known():
    errors = load("edges").meta["errors"]
    refused = {case.name for case in probes()["edges"].cases if case.refusal}
    assert set(errors) < refused
    # PTX forbids these; an H200 answers all the same, and says nothing of the rule.
    assert refused - set(errors) == {
        "bulk 24 from 0 to 0",
        "bulk 36 from 0 to 0",
        "tile elsewhere",
    }


@pytest.mark.parametrize("name", sanitizer.CASES)
def test_the_machine_finds_what_the_tool_finds(name):
    if name in sanitizer.UNSEEN:
        assert sanitizer.recorded()["verdicts"][name] == []
        assert sanitizer.machine_says(name).startswith(sanitizer.UNSEEN[name])
        return
    for search in (True, False) if name in sanitizer.UNTRACED else (True,):
        assert sanitizer.difference(name, search) == ""


def test_the_verdicts_are_of_these_sources_and_of_both_kinds():
    found = sanitizer.recorded()
    assert found["sources"] == sanitizer.sources()
    assert list(found["verdicts"]) == list(sanitizer.CASES)
    assert sum(map(bool, found["verdicts"].values())) == 6


def test_what_only_ptx_forbids_is_no_difference_outside(monkeypatch):
    """A machine that takes everything differs in what the card refuses, no more."""
    monkeypatch.setattr("fp4ref.hardware.bulk_copy.ALIGNMENT", 4)
    here = differences("edges", "emulator", "bulk")
    outside = differences("edges", "emulator", "bulk", outside=True)
    assert len(here) == 6
    assert len(outside) == 4
    assert set(outside) < set(here)


def test_a_source_in_another_cta_and_a_copy_within_one_end_in_an_error():
    """The machine refuses the first; of the second it says that the card differs."""
    cases = probes()["bulk_copies"].cases
    refused = {case.name for case in cases if case.refusal}
    unlike = {case.name for case in cases if case.unlike}
    assert set(load("bulk_copies").meta["errors"]) == refused | unlike
    assert len(refused) == 4
    assert len(unlike) == 1
