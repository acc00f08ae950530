"""order: what is not certain is incomplete, and what a report says."""

from __future__ import annotations

import pytest
from on_machine import launch, machine
from order_cases import WORD, ZEROS, found

from fp4ref.errors import InputError, LaunchFault
from fp4ref.hardware import named_barrier, smem
from fp4ref.hardware.order import book, knowledge
from fp4ref.hardware.order.race import RaceFault


def handing_over(after):
    """Two warps write a word in turn, barriers between; one of them is left out."""

    def body(warp):
        for turn in range(80):
            if warp.index == turn % 2:
                smem.st(warp, WORD, ZEROS)
            if turn != after:
                yield from named_barrier.sync(warp, 0, 64)

    return body


@pytest.mark.parametrize(
    ("module", "budget", "most", "said"),
    [
        (book, "MOST_ACCESSES", 3, "more than 3 accesses in one launch"),
        (knowledge, "MOST_IDS", 64, "more than 64 ids of accesses in one launch"),
    ],
)
def test_over_budget_is_incomplete(monkeypatch, module, budget, most, said):
    """Never clean, and no error that is made up: a budget that is spent knows less."""
    right, wrong = handing_over(None), handing_over(70)
    assert found(right, right)[1].order.findings.verdict == "clean"
    assert found(wrong, wrong)[1].order.findings.verdict == "error"
    monkeypatch.setattr(module, budget, most)
    monkeypatch.setattr(book, budget, most)
    for body in (right, wrong):
        findings = found(body, body)[1].order.findings
        assert findings.verdict == "incomplete"
        (why,) = findings.unsure
        assert said in why
        assert "run fewer tiles" in why
        assert why in findings.to_dict()["unsure"]
    early = handing_over(0)
    assert found(early, early)[1].order.findings.verdict == "error"


def racing(warp):
    if warp.index == 0:
        smem.st(warp, WORD, ZEROS)
    else:
        smem.st(warp, WORD + 2, ZEROS)


def test_a_recorded_launch_raises_all_races_at_its_end():
    on = machine(trace=True)
    with pytest.raises(RaceFault, match="missing synchronisation") as caught:
        launch(on, racing, racing)
    text = str(caught.value)
    assert "st.shared of cta (0, 0, 0) warp0 writes at test_order_report.py" in text
    assert "warp1 writes at test_order_report.py" in text
    assert "smem0 0x602, 2 bytes" in text
    assert "causality order" in text
    (race,) = caught.value.races
    assert race.runs == ((0x602, 2),)
    line = racing.__code__.co_firstlineno
    sides = {race.first.source, race.second.source}
    assert sides == {f"test_order_report.py:{line + at}" for at in (2, 4)}
    report = on.order.findings.to_dict()
    assert report["verdict"] == "error"
    assert report["races"][0]["failure"] == "missing synchronisation"
    with pytest.raises(LaunchFault):
        launch(on, racing, racing)


def test_what_becomes_of_races_is_one_of_three_words():
    with pytest.raises(InputError, match="'raise', 'collect' or 'off'"):
        machine(races="ignore")


def test_an_unrecorded_launch_does_not_look():
    on = launch(machine(), racing, racing)
    assert on.order.findings.verdict == "clean"
    assert not on.order.watches
    on = launch(machine(races="collect"), racing, racing)
    assert on.order.findings.verdict == "error"
    assert "test_order_report.py" in on.order.findings.races[0].first.source
