"""faults: every mistake is caught as its row says, and its clean twin says nothing."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest

from fp4ref.cuda_kernel.build import nvrtc_version
from fp4ref.errors import Fp4refError, InputError
from fp4ref.evidence.faults import (
    GALLERY,
    Catch,
    Fault,
    disagreement,
    fault,
    run_fault,
    run_twin,
)
from fp4ref.evidence.faults.change import Change
from fp4ref.evidence.faults.gallery import GEMM
from fp4ref.evidence.faults.kinds import KINDS
from fp4ref.evidence.faults.place import EXIT
from fp4ref.evidence.faults.reports import REPORTS
from fp4ref.evidence.faults.riddles import RIDDLES, Riddle

SEEDS = range(19)
SCHEDULES: tuple[str | int, ...] = ("late", *SEEDS)
"""The 20 others than ``eager``."""

needs_nvrtc = pytest.mark.skipif(
    nvrtc_version() is None, reason="needs NVRTC: pip install 'fp4ref[cuda]'"
)


def params(compiled: bool) -> list[Any]:
    """Every mistake in every form: those of the compiled kernel, or all others."""
    found = []
    for each in GALLERY.values():
        for form in each.forms:
            if compiled == (each.subject == GEMM and form == "ptx"):
                marks = [needs_nvrtc] if compiled else []
                name = f"{each.name}-{form}"
                found.append(pytest.param(each, form, id=name, marks=marks))
    return found


EVERY = params(compiled=False) + params(compiled=True)


def twins() -> list[Any]:
    """Each program and each GEMM that has mistakes, once."""
    found: dict[object, Any] = {}
    for each in GALLERY.values():
        run = each.shape, tuple(each.config.items()) if each.subject == GEMM else ()
        for form in each.forms:
            key = each.subject, form, *run
            marks = [needs_nvrtc] if each.subject == GEMM and form == "ptx" else []
            name = f"{each.subject}-{form}-like-{each.name}"
            found.setdefault(key, pytest.param(each, form, id=name, marks=marks))
    return list(found.values())


# -- the rows ----------------------------------------------------------------------


def test_the_gallery_has_every_kind_that_the_machine_has() -> None:
    """Kind 8, registers of a warpgroup, has no effect on the machine."""
    assert len(GALLERY) >= 40
    kinds = {kind for each in GALLERY.values() for kind in each.kinds}
    assert set(range(1, 24)) - {8} <= kinds
    assert kinds <= set(KINDS)
    cases = {case for each in GALLERY.values() for case in each.field}
    assert cases >= {"B28", "B29", "B30", "B31", "B32"}
    assert cases >= {"B69", "B71", "B73", "B74", "B82"}


def test_every_report_is_public_and_stands_for_a_row() -> None:
    assert {case for each in GALLERY.values() for case in each.field} == set(REPORTS)
    for report in REPORTS.values():
        assert report.what.isascii()
        assert all(re.fullmatch(r"[\w-]+/[\w-]+#\d+", t) for t in report.threads)


@pytest.mark.parametrize("each", GALLERY.values(), ids=list(GALLERY))
def test_a_row_is_whole(each: Fault) -> None:
    for text in (each.title, each.symptom, each.evidence, each.cause, each.remedy):
        assert text
        assert text.isascii()
    assert "ptx" in each.forms
    for name, form in each.forms.items():
        ours = form.change.file.startswith("kernel/") or name == "emulator"
        assert ours or form.change.file.endswith(".ptx")
        assert form.place == EXIT or form.place.rpartition(":")[2].isdigit()
        if form.caught.by == "rule":
            assert form.caught.what in {kind.__name__ for kind in faults_of_machine()}


def faults_of_machine() -> set[type[Fp4refError]]:
    """Every class below `Fp4refError`."""
    found, new = set(), {Fp4refError}
    while new:
        found |= new
        new = {sub for kind in new for sub in kind.__subclasses__()}
    return found


def test_a_change_is_one_place_and_moves_no_line() -> None:
    change = Change("kernel/gemm/cleanup.cuh", "accumulator.tail();", "")
    assert change.line == "kernel/gemm/cleanup.cuh:23"
    with pytest.raises(InputError, match="0 times"):
        change.applied("mainloop.tail();")
    with pytest.raises(InputError, match="2 times"):
        change.applied("accumulator.tail();" * 2)
    longer = Change(change.file, change.right, "a();\nb();")
    with pytest.raises(InputError, match="every later line would move"):
        longer.applied("accumulator.tail();")


def test_an_unknown_name_has_a_nearest_one() -> None:
    with pytest.raises(InputError, match="the nearest name is expect-too-few"):
        fault("expect-to-few")
    with pytest.raises(InputError, match="nearest name is"):
        fault(None)
    with pytest.raises(InputError, match="--backend ptx"):
        run_fault(fault("mma-by-every-lane"), "emulator")


# -- the runs ----------------------------------------------------------------------


@pytest.mark.parametrize(("each", "form"), params(compiled=False))
def test_caught_under_eager(each: Fault, form: Any) -> None:
    """By the rule or the event that the row names, at the statement that it names."""
    assert disagreement(each, form, run_fault(each, form)) == ""


@pytest.mark.rotating(48)
@pytest.mark.parametrize(("each", "form"), params(compiled=True))
def test_caught_in_the_compiled_kernel(each: Fault, form: Any) -> None:
    assert disagreement(each, form, run_fault(each, form)) == ""


@pytest.mark.rotating(19)
@pytest.mark.parametrize(("each", "form"), twins())
def test_the_clean_twin_says_nothing(each: Fault, form: Any) -> None:
    assert run_twin(each, form).silent
    run_fault(each, form)
    assert run_twin(each, form).silent


@pytest.mark.parametrize("riddle", RIDDLES, ids=lambda riddle: riddle.fault.name)
def test_the_run_decides_a_riddle(riddle: Riddle) -> None:
    assert len(riddle.wrong) >= 2
    report = run_fault(riddle.fault, next(iter(riddle.fault.forms))).report()
    assert riddle.proof in report


def test_there_are_twelve_riddles() -> None:
    assert len({riddle.fault.name for riddle in RIDDLES}) == len(RIDDLES) == 12


def test_caught_under_other_schedules(rotating_seed: int) -> None:
    """A sample, another one each day."""
    rng = random.Random(rotating_seed)
    for each in rng.sample(list(GALLERY.values()), 10):
        schedule = rng.choice(SCHEDULES)
        twin = run_twin(each, _light(each), schedule)
        assert twin.silent, (each.name, schedule, twin.report())
        check(each, _light(each), schedule)


def _light(each: Fault) -> Any:
    """The form that needs no compiler."""
    return "emulator" if "emulator" in each.forms and each.subject == GEMM else "ptx"


def check(each: Fault, form: Any, schedule: str | int) -> Catch:
    """A mistake is not silent; one that only computes is found by the same event."""
    outcome = run_fault(each, form, schedule)
    assert not outcome.silent, (each.name, form, schedule)
    if each.form(form).caught.by != "rule":
        assert disagreement(each, form, outcome) == ""
    return outcome


@pytest.mark.soak
@pytest.mark.parametrize(("each", "form"), EVERY)
def test_caught_under_every_schedule(each: Fault, form: Any) -> None:
    for schedule in ("eager", *SCHEDULES):
        check(each, form, schedule)


@pytest.mark.soak
@pytest.mark.parametrize(("each", "form"), twins())
def test_the_clean_twin_says_nothing_under_any_schedule(each: Fault, form: Any) -> None:
    for schedule in SCHEDULES:
        assert run_twin(each, form, schedule).silent, schedule
