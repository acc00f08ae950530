"""The switch of schedules: other overlap, the same bits, the same hardware event."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from drawn_words import WORDS, words_that_meet
from player_page import PLAYER

import fp4ref
from fp4ref import viz
from fp4ref.errors import InputError
from fp4ref.evidence.hardware_events import hardware_events
from fp4ref.trace import Trace
from fp4ref.viz.packet import unpack
from fp4ref.viz.schedules import same_bits
from fp4ref.viz.sentences import sentences

Runs = dict[str, fp4ref.Run]
MMA = re.compile(r"(starts|done) MMA (\d+) of 8 of tile (\(\d, \d\))")


def trace_of(run: fp4ref.Run) -> Trace:
    assert run.trace is not None
    return run.trace


def test_every_event_and_byte_is_counted(scheduled: Runs, whole: viz.Player) -> None:
    """A k-tile has 4 loads, 4 copies of each operand's scales and 4 MMAs."""
    first = next(iter(scheduled.values()))
    for run in scheduled.values():
        assert (run.d.view(np.uint32) == first.d.view(np.uint32)).all()
    header, _ = unpack(whole.packet)
    tile = 128 * 128
    k_tile = 2 * tile + 2 * 128 * 16 + 8 * 128 * 16 + 4 * 4 * tile
    assert header["schedules"]["same"] == {
        "events": 2 * (2 * (4 + 8 + 4) + 4),
        "nbytes": 2 * (2 * k_tile + 4 * tile),
        "different": 0,
    }


def test_one_other_byte_is_counted(scheduled: Runs) -> None:
    found = [hardware_events(trace_of(run)) for run in scheduled.values()]
    key, event = next(reversed(found[1].items()))
    data = event.data.copy()
    data.flat[7] ^= 1
    found[1][key] = replace(event, data=data)
    assert same_bits(found)["different"] == 1
    del found[1][key]
    assert same_bits(found)["different"] == 1


def busy(trace: Trace, suffix: str) -> list[set[int]]:
    """Steps of each SM with such work in flight."""
    return [
        {
            step
            for e in trace
            if (e.sm, e.kind) == (sm, "land") and e.operation.endswith(suffix)
            for step in range(e.issued, e.step + 1)
        }
        for sm in (0, 1)
    ]


def test_a_switch_keeps_the_hardware_event(
    scheduled: Runs, whole: viz.Player, open_players: Any
) -> None:
    """The sentence names the same MMA of the same tile; the table counts overlap."""
    page = open_players(whole)
    page.evaluate(f"() => {PLAYER}.show('schedules')")
    page.locator(".fp4ref-twin summary").click()
    told = {name: sentences(trace_of(run)) for name, run in scheduled.items()}
    own = trace_of(scheduled["timed"])
    seen = 0
    for event in [e for e in own if e.operation == "tcgen05.mma"][3::11]:
        wanted = MMA.search(told["timed"][event.step])
        assert wanted
        for name in scheduled:
            page.evaluate(
                f"() => {{ {PLAYER}.choose('timed'); {PLAYER}.go({event.step}); }}"
            )
            page.locator("[data-act=schedule]").select_option(name)
            step = int(page.locator(".fp4ref-player").get_attribute("data-step"))
            there = MMA.search(told[name][step])
            assert there, (event.step, name)
            assert there.groups() == wanted.groups(), (event.step, name)
            assert there[0] in page.locator(".fp4ref-says").inner_text()
            seen += 1
    assert seen == 12
    rows = page.locator(".fp4ref-twin tbody tr").all_inner_texts()
    for row, (name, run) in zip(rows, scheduled.items(), strict=True):
        trace = trace_of(run)
        pairs = zip(busy(trace, ".load"), busy(trace, "tcgen05.mma"), strict=True)
        both = set().union(*(loads & mmas for loads, mmas in pairs))
        cells = row.split("\t")
        assert (cells[0], *cells[4:]) == (name, str(len(both)), str(len(trace)))
    assert rows[1].split("\t")[4] == "0"  # eager
    assert "The bits do not change" in page.locator(".fp4ref-picture").inner_text()
    page.evaluate(f"() => {PLAYER}.choose('eager')")
    page.locator("[data-view=timeline]").first.click()
    words = page.locator(".fp4ref-picture").text_content()
    assert "Schedule eager: loads and MMAs of one SM overlap at 0 of" in words
    page.locator("[data-act=link]").click()
    address = page.locator(".fp4ref-link a").get_attribute("href")
    assert "schedule=eager" in address
    page.goto(address)
    page.locator(".fp4ref-picture svg").wait_for()
    assert page.locator("[data-act=schedule]").input_value() == "eager"


def test_the_text_follows_the_schedule(scheduled: Runs) -> None:
    own, *others = scheduled.values()
    player = viz.play(own, schedules=others, step=len(trace_of(own)) - 1)
    assert player.schedule == "timed"
    player.schedule = "eager"
    assert player.step == min(len(trace_of(own)), len(trace_of(others[0]))) - 1
    assert f"of {len(trace_of(others[0])) - 1}:" in player.text().splitlines()[0]
    with pytest.raises(InputError, match="there is timed, eager, seed 0, late"):
        player.schedule = "soon"


def test_runs_that_do_not_belong_together_are_refused(
    scheduled: Runs, small: fp4ref.Run
) -> None:
    own = scheduled["timed"]
    with pytest.raises(InputError, match="two runs have schedule timed"):
        viz.play(own, schedules=[own])
    with pytest.raises(InputError, match="another shape"):
        viz.play(own, schedules=[small])


@pytest.mark.rotating(2)
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_views_of_many_runs_can_be_read(
    whole: viz.Player, open_players: Any, width: int, scheme: str
) -> None:
    """No word meets another or is cut, and axe finds nothing."""
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="axe is in the extra 'dev'"
    )
    size = {"width": width, "height": 1200}
    page = open_players(
        whole, viewport=size, color_scheme=scheme, reduced_motion="reduce"
    )
    for view in ("schedules", "tensors"):
        for step in (0, 350, 700):
            page.evaluate(f"() => {{ {PLAYER}.show('{view}'); {PLAYER}.go({step}); }}")
            words = page.evaluate(WORDS)
            assert words_that_meet(words) == [], (view, step)
            assert [w["words"] for w in words if w["beyond"] > 1] == [], (view, step)
            assert min(w["size"] for w in words) >= 12, (view, step)
        found = axe.Axe().run(page).response["violations"]
        assert not [v for v in found if v["impact"] in ("serious", "critical")], view
    assert page.evaluate("document.documentElement.scrollWidth") <= width
