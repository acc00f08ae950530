"""order: what is not certain is incomplete, and what a report says."""

from __future__ import annotations

import pytest
from on_machine import launch, machine
from order_cases import WORD, ZEROS, found

from fp4ref.errors import InputError, LaunchFault
from fp4ref.hardware import smem
from fp4ref.hardware.order import book
from fp4ref.hardware.order.race import RaceFault


def test_over_budget_is_incomplete(monkeypatch):
    monkeypatch.setattr(book, "MOST_ACCESSES", 3)

    def body(warp):
        for i in range(5):
            smem.st(warp, WORD + 4 * i, ZEROS)

    _, on = found(body)
    assert on.order.findings.verdict == "incomplete"
    assert "more than 3 accesses" in on.order.findings.unsure[0]


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
