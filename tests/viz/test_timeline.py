"""test_timeline: the lanes in a real Chromium, measured on their rectangles."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import fp4ref
from fp4ref import viz
from fp4ref.trace.timeline import overlap, rows
from fp4ref.viz import player as player_module
from fp4ref.viz.packet import trace_packet

PLAYER = "document.querySelector('.fp4ref-player').fp4ref"
RECTS = """(all) => all.map((r, i) => ({
  order: i, step: +r.dataset.step, cls: r.getAttribute("class").split(" "),
  x: +r.getAttribute("x"), y: +r.getAttribute("y"),
  w: +r.getAttribute("width"), h: +r.getAttribute("height") }))"""

Rect = dict[str, Any]


def bars(page: Any) -> list[Rect]:
    """Rectangles of events in the lanes, in the order in which they are drawn."""
    lanes = page.locator(".fp4ref-picture svg rect[data-step]").evaluate_all(RECTS)
    return [r for r in lanes if r["y"] > 20]  # above is the overview


def meet(a: Rect, b: Rect) -> bool:
    """Whether two rectangles share an area; 0.02 is two times the rounding."""
    return (
        min(a["x"] + a["w"], b["x"] + b["w"]) - max(a["x"], b["x"]) > 0.02
        and min(a["y"] + a["h"], b["y"] + b["h"]) - max(a["y"], b["y"]) > 0.02
    )


def hidden_mmas(found: list[Rect]) -> list[tuple[Rect, Rect]]:
    """MMAs, and the commits that meet them or are drawn over them."""
    mmas = [r for r in found if "f-c-mma" in r["cls"]]
    commits = [r for r in found if "f-c-commit" in r["cls"]]
    return [(m, c) for m in mmas for c in commits if meet(m, c)]


@pytest.mark.rotating(1)
@pytest.mark.parametrize("width", [1280, 390])
def test_no_mma_is_under_a_commit(
    walk_runs: tuple[fp4ref.Run, fp4ref.Run], open_players: Any, width: int
) -> None:
    run, _ = walk_runs
    assert run.trace is not None
    page = open_players(viz.play(run), viewport={"width": width, "height": 900})
    counted = {"mma": 0, "commit": 0}
    for span in ("60", "120", "400", "all"):
        page.locator("[data-control=span]").select_option(span)
        for step in range(150, len(run.trace), 500 if span != "all" else 5000):
            page.evaluate(f"() => {PLAYER}.go({step})")
            found = bars(page)
            assert hidden_mmas(found) == [], (span, step)
            for name in counted:
                counted[name] += sum(f"f-c-{name}" in r["cls"] for r in found)
    assert min(counted.values()) > 100


def test_work_in_flight_is_stacked(
    walk_runs: tuple[fp4ref.Run, fp4ref.Run], open_players: Any
) -> None:
    """No bar of a unit meets another one, and eight MMAs are seen at once."""
    run, _ = walk_runs
    assert run.trace is not None
    page = open_players(viz.play(run))
    most = 0
    for step in range(150, len(run.trace), 400):
        page.evaluate(f"() => {PLAYER}.go({step})")
        flying = [r for r in bars(page) if "f-bar" in r["cls"]]
        for i, a in enumerate(flying):
            for b in flying[:i]:
                assert not meet(a, b), (step, a, b)
        most = max(most, sum("f-c-mma" in r["cls"] for r in flying))
    assert most >= 8


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("top: y, ", "top: 0, "),  # commits where the MMAs are
        ("y + (band.plain ? 2 :", "y + (true ? 2 :"),  # one row for all
    ],
)
def test_a_commit_over_an_mma_is_noticed(
    walk_runs: tuple[fp4ref.Run, fp4ref.Run],
    open_players: Any,
    monkeypatch: pytest.MonkeyPatch,
    right: str,
    wrong: str,
) -> None:
    script = player_module.esm()
    assert script.count(right) == 1
    monkeypatch.setattr(player_module, "esm", lambda: script.replace(right, wrong))
    page = open_players(viz.play(walk_runs[0], step=700))
    assert hidden_mmas(bars(page))


@pytest.mark.rotating(1)
@pytest.mark.parametrize("width", [1280, 390])
def test_the_overlap_is_said(
    walk_runs: tuple[fp4ref.Run, fp4ref.Run], open_players: Any, width: int
) -> None:
    run, _ = walk_runs
    assert run.trace is not None
    page = open_players(viz.play(run), viewport={"width": width, "height": 900})
    words = " ".join(
        page.locator(".fp4ref-picture svg text").evaluate_all(
            "(all) => all.map((t) => t.textContent)"
        )
    )
    steps = f"{overlap(run.trace):,} of {len(run.trace):,} steps"
    sentence = f"Schedule seed 0: loads and MMAs of one SM overlap at {steps}"
    assert sentence in words
    assert sentence in page.locator("figcaption").inner_text()


def test_the_event_box_shows_the_whole_statement(
    walk_runs: tuple[fp4ref.Run, fp4ref.Run], open_players: Any
) -> None:
    run, kernel = walk_runs
    assert run.trace is not None
    page = open_players(viz.play(run, kernel))
    mma = run.trace.select(operation="tcgen05.mma")[0]
    page.evaluate(f"() => {PLAYER}.go({mma.step})")
    page.locator(".fp4ref-details summary").click()
    page.evaluate(f"() => {PLAYER}.go({mma.step})")  # the fold stays open
    shown = page.locator(".fp4ref-event code").inner_text()
    assert re.fullmatch(
        r"tcgen05\.mma\(self\.warp, .*, cta_group=self\.cta_group\)", shown
    )
    page.locator("[data-view=sides]").first.click()
    page.keyboard.press("n")
    lines = page.locator(".fp4ref-picture text.f-code").all_text_contents()
    assert not any("…" in each for each in lines)
    assert sum(each.endswith((")", ");")) for each in lines) >= 2


def test_the_packet_has_the_rows(small: fp4ref.Run) -> None:
    assert small.trace is not None
    header, _ = trace_packet(small.trace)
    assert header["columns"]["row"] == rows(small.trace)
    assert header["overlap"] == overlap(small.trace)


@pytest.mark.rotating(1)
@pytest.mark.parametrize("width", [1280, 688, 390])
def test_the_name_of_a_barrier_ends_before_its_phase(
    walk_runs: tuple[fp4ref.Run, fp4ref.Run], open_players: Any, width: int
) -> None:
    player = viz.play(walk_runs[0], view="barriers", step=1000)
    page = open_players(player, viewport={"width": width, "height": 900})
    boxes = page.locator(".fp4ref-picture svg rect.f-bit").evaluate_all(
        "(all) => all.map((r) => [r.x.baseVal.value, r.y.baseVal.value])"
    )
    names = page.locator(".fp4ref-picture svg text.f-strong").evaluate_all(
        "(all) => all.map((t) => t.getBBox()).map((b) => [b.x, b.y, b.x + b.width])"
    )
    assert len(names) == len(boxes) > 10
    for (left, _), (_, _, right) in zip(boxes, names, strict=True):
        assert right <= left


@pytest.fixture(scope="module")
def timed() -> fp4ref.Run:
    rng = np.random.default_rng(4)
    a, b = (
        fp4ref.quantize(rng.standard_normal((rows, 1024), np.float32))
        for rows in (256, 256)
    )
    return fp4ref.run(a, b, schedule="timed", sms=2, trace=True)


def test_a_trace_with_times_is_drawn_along_clocks(
    timed: fp4ref.Run, open_players: Any
) -> None:
    """Each MMA is where the model has it in flight, from its issue to its landing."""
    assert timed.trace is not None
    landed = [
        e for e in timed.trace.select(operation="tcgen05.mma") if e.kind == "land"
    ]
    length = max(event.end for event in timed.trace)
    page = open_players(viz.play(timed, step=landed[0].step))
    page.select_option("[data-control=span]", "all")
    drawn = {
        int(rect["step"]): rect
        for rect in page.locator("rect.f-bar.f-c-mma").evaluate_all(
            "(all) => all.map((r) => ({step: r.dataset.step, x: +r.getAttribute('x'),"
            " width: +r.getAttribute('width')}))"
        )
    }
    assert set(drawn) == {event.step for event in landed}
    first, last = landed[0], landed[-1]
    begins = {e.step: timed.trace.events[e.issued].end for e in landed}
    moved = drawn[last.step]["x"] - drawn[first.step]["x"]
    scale = moved / (begins[last.step] - begins[first.step])
    lane = page.locator(".fp4ref-picture rect.f-lane").first.get_attribute("width")
    assert scale * length == pytest.approx(float(lane), rel=0.01)
    for event in landed:
        wanted = max(2, (event.end - begins[event.step]) * scale)
        assert drawn[event.step]["width"] == pytest.approx(wanted, abs=0.1)


def test_bars_with_times_hide_nothing(timed: fp4ref.Run, open_players: Any) -> None:
    assert timed.trace is not None
    page = open_players(viz.play(timed))
    for step in range(150, len(timed.trace), 300):
        page.evaluate(f"() => {PLAYER}.go({step})")
        flying = [r for r in bars(page) if "f-bar" in r["cls"]]
        for i, a in enumerate(flying):
            for b in flying[:i]:
                assert not meet(a, b), (step, a, b)


def test_the_whole_axis_is_named_in_clocks(
    timed: fp4ref.Run, open_players: Any
) -> None:
    assert timed.trace is not None
    page = open_players(viz.play(timed))
    page.select_option("[data-control=span]", "all")
    words = page.locator(".fp4ref-picture svg").text_content()
    length = f"{max(event.end for event in timed.trace):,.0f}"
    assert f"clocks 0 to {length} of the timing model" in " ".join(words.split())
