"""Every report as JSON: what its text says, its JSON has too."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner
from wide_operands import wide_pair

import fp4ref
from fp4ref.commands import app
from fp4ref.errors import DeadlockError, NotModelled
from fp4ref.evidence.comparison import compare
from fp4ref.evidence.faults import GALLERY, Catch, fault, run_fault, run_twin
from fp4ref.gemm import mma_warp
from fp4ref.hardware import mbarrier
from fp4ref.hardware.order.race import RaceFault
from fp4ref.trace import Trace

JOINTS = """
    1 a and at b by edge edges fault first for from graph is lines more of on other out
    released remedy review root rule second signalled step steps to wait-for waits where
    who witness x
    actors barriers before cta every for generation had has holds it landings of order
    peeks phases result differs between schedules run that the this tiles waits warps
    with each in
    byte bytes clean different distinguishable equal events hardware visited
"""
"""Words with which a text joins its values."""


def values(json_values: Any) -> Iterator[str]:
    """Yield every value of a JSON document as text."""
    if isinstance(json_values, dict):
        for name, each in json_values.items():
            yield name
            yield from values(each)
    elif isinstance(json_values, list):
        for each in json_values:
            yield from values(each)
    elif json_values is not None:
        yield str(json_values)


def words(text: str) -> set[str]:
    """Words and numbers of a text, numbers without their commas."""
    plain = re.sub(r"(?<=\d),(?=\d{3})", "", text.lower())
    return {each.strip(".:;,()'\"") for each in re.split(r"[\s=]+", plain)} - {""}


def unsaid(text: str, report: dict[str, Any]) -> set[str]:
    """Words of a text that its JSON lacks; the lines of a witness are only numbered."""
    whole = json.loads(json.dumps(report, allow_nan=False))
    text = re.sub(r"(?m)^ *(\d+\. |witness, .*|\(\d+ steps before\))", "", text)
    return words(text) - words(" ".join(values(whole))) - words(JOINTS)


def caught(name: str) -> Catch:
    """Run a mistake in its first form."""
    each = fault(name)
    return run_fault(each, next(iter(each.forms)))


@pytest.mark.parametrize(
    "name",
    [
        "expect-too-few",  # at the exit, with races up to there
        "expect-forgotten",  # a deadlock with a root
        "alloc-blocks-for-ever",  # a deadlock without
        "too-many-arrivals",
        "unequal-thread-counts",
        "d-fenced-by-the-storing-warp",
    ],
)
def test_a_fault(name: str) -> None:
    error = caught(name).fault
    assert error is not None
    report = error.to_dict()
    assert report["type"] == type(error).__name__
    assert unsaid(str(error), report) == set()
    assert [race["where"] for race in report["races"]] == [r.where for r in error.races]


def test_a_deadlock_has_its_root_and_its_graph() -> None:
    error = caught("expect-forgotten").fault
    assert isinstance(error, DeadlockError)
    report = error.to_dict()
    assert report["root"]["barrier"] == "mainloop.full[0]"
    assert error.root is not None
    assert set(report["root"]) == set(error.root.__slots__)
    assert len(report["edges"]) == 7
    unexpected = caught("answer-expected-by-one").fault
    assert unexpected is not None
    root = unexpected.to_dict()["root"]
    assert root["what"].startswith("16 bytes of a CLC answer came")
    assert root["barrier"] == "mbarrier 0x400"
    without = caught("alloc-blocks-for-ever").fault
    assert without is not None
    assert without.to_dict()["root"] is None


def test_a_race_fault_has_all_its_races() -> None:
    name = next(iter(races()))
    error = caught(name).fault
    assert isinstance(error, RaceFault)
    report = error.to_dict()
    assert len(report["races"]) == len(error.races) >= 1
    assert unsaid(str(error), report) == set()
    for race in error.races:
        assert unsaid(str(race), race.to_dict()) == set()
        assert set(race.to_dict()) >= set(race.__slots__)


def races() -> list[str]:
    """Mistakes that are a race."""
    return [
        each.name
        for each in GALLERY.values()
        if next(iter(each.forms.values())).caught.what == "RaceFault"
    ]


def test_what_is_not_modelled_has_its_gap() -> None:
    error = NotModelled("x", gap="some-row", who="w")
    assert error.to_dict() | {"races": []} == {
        "type": "NotModelled",
        **{"what": "x", "who": "w", "where": "", "rule": "", "remedy": ""},
        **{"races": [], "gap": "some-row"},
    }


def test_a_comparison() -> None:
    clean, found = fault("scale-columns"), caught("scale-columns")
    assert found.difference is not None
    report = found.difference.to_dict()
    assert unsaid(str(found.difference), report) == set()
    traces = run_twin(clean, "emulator").trace, found.trace
    assert traces[0] is not None
    assert traces[1] is not None
    compared = compare(traces[0], traces[1])
    assert compared.to_dict()["first_difference"] == report
    assert compared.to_dict()["ok"] is False
    same = compare(traces[0], traces[0])
    assert unsaid(same.report(), same.to_dict()) == set()
    assert same.to_dict()["first_difference"] is None


@pytest.mark.parametrize("by", ["rule", "compare", "advisory", "review"])
def test_what_a_run_of_the_gallery_shows(by: str) -> None:
    each, form = next(
        (each, name)
        for each in GALLERY.values()
        for name, form in each.forms.items()
        if form.caught.by == by and (each.subject != "gemm" or name == "emulator")
    )
    found = run_fault(each, form)
    report = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert report["caught"] is True
    apart = {name: value for name, value in report.items() if name != "report"}
    assert unsaid(found.report(), apart) == set()
    assert bool(report["reviews"]) == (by == "review")
    assert ("fault" in report) == (by == "rule")
    assert ("difference" in report) == (by == "compare")


def test_a_row_of_the_gallery_has_every_field() -> None:
    each = fault("expect-too-few")
    row = json.loads(json.dumps(each.to_dict()))
    assert set(row) >= set(each.__slots__)
    form = each.forms["ptx"]
    said = {form.caught.by, form.caught.what, form.caught.says, form.place}
    assert said <= set(map(str, row["forms"]["ptx"].values()))


def traced(patch: pytest.MonkeyPatch | None = None) -> fp4ref.Run:
    """Run a small GEMM; with `patch`, one that gives its stages back too early."""
    a, b = wide_pair(3, 128, 64, 1024)
    config = fp4ref.GemmConfig.nvfp4(tile_n=64, stages=2, scheduler="static")
    if patch:
        early = partial(mbarrier.arrive, count=1)
        patch.setattr(mma_warp, "release_stage", lambda w, stage: early(w, stage.empty))
    return fp4ref.run(a, b, config=config, sms=1, races="off")


def test_a_certificate(monkeypatch: pytest.MonkeyPatch) -> None:
    found = fp4ref.certify(traced())
    (cta,) = found.to_dict()["ctas"]
    assert unsaid(str(found.ctas[0]), cta) == set()
    broken = fp4ref.certify(traced(monkeypatch))
    report = json.loads(json.dumps(broken.to_dict()))
    assert report["verdict"] == "error"
    (cta,) = report["ctas"]
    assert len(cta["findings"]) == len(broken.findings)
    for finding in broken.findings:
        assert unsaid(str(finding), finding.to_dict()) == set()


def test_what_certify_could_not_follow(monkeypatch: pytest.MonkeyPatch) -> None:
    error = caught("expect-forgotten").fault
    assert error is not None
    assert isinstance(error.trace, Trace)
    (cta,) = fp4ref.certify(error.trace).to_dict()["ctas"]
    assert "DeadlockError" in cta["incomplete"][0]


def test_an_exploration(monkeypatch: pytest.MonkeyPatch) -> None:
    for run in (traced(), traced(monkeypatch)):
        for each in fp4ref.explore(run, ring="mainloop"):
            assert unsaid(str(each), each.to_dict()) == set()


def test_certify_and_its_search_print_only_json(tmp_path: Path) -> None:
    run = traced()
    assert run.trace is not None
    path = str(run.trace.save(tmp_path / "one"))
    said = CliRunner().invoke(app, ["certify", path, "--ring", "mainloop", "--json"])
    explored = [each.to_dict() for each in fp4ref.explore(run, ring="mainloop")]
    both = fp4ref.certify(run).to_dict() | {"explored": explored}
    assert json.loads(said.stdout) == json.loads(json.dumps(both))
