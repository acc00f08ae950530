"""What matters in a trace is found, and the player goes there."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from player_page import PLAYER

import fp4ref
from fp4ref import viz
from fp4ref.trace import RecordedPlan, Trace
from fp4ref.viz.milestones import KINDS, milestones


@pytest.fixture(scope="module", params=[0, 1], ids=["emulator", "ptx"])
def trace(request: Any, walk_runs: tuple[fp4ref.Run, fp4ref.Run]) -> Trace:
    found = walk_runs[request.param].trace
    assert found is not None
    return found


def test_each_tile_begins_is_summed_and_is_stored_once(trace: Trace) -> None:
    plan, shape = RecordedPlan.required(trace.meta), trace.meta["shape"]
    tiles = -(-shape["m"] // plan.tile_m) * -(-shape["n"] // plan.tile_n)
    found = Counter(milestones(trace).values())
    assert set(found) == set(KINDS)
    assert [found[kind] for kind in ("first", "summed", "stored")] == [tiles] * 3
    assert found["full"] == tiles * plan.k_tiles(shape["k"])


def test_a_tile_is_stored_after_it_is_summed_after_it_began(trace: Trace) -> None:
    for sm in {event.sm for event in trace}:
        order = [
            kind
            for step, kind in milestones(trace).items()
            if trace.events[step].sm == sm and kind in ("first", "summed", "stored")
        ]
        for earlier, later in (("first", "summed"), ("summed", "stored")):
            for count in range(1, len(order) + 1):
                done = Counter(order[:count])
                assert done[later] <= done[earlier]


def test_a_flip_that_wakes_ends_a_wait_that_had_begun(trace: Trace) -> None:
    """The other way round than it is found: each such flip has a wait around it."""
    found = [step for step, kind in milestones(trace).items() if kind == "wakes"]
    assert found
    for step in found:
        flipped = {
            (b.space, b.address)
            for b in trace.events[step].barrier
            if b.before[0] != b.after[0]
        }
        waits = (
            0 <= wait.issued < step < wait.step
            and (f"smem{wait.sm}", wait.operands["mbar"]) in flipped
            for wait in trace.events[step:]
            if wait.operation.startswith("mbarrier.try_wait")
        )
        assert any(waits)


def step_of(page: Any) -> int:
    return int(
        page.evaluate("() => +document.querySelector('.fp4ref-player').dataset.step")
    )


def test_keys_and_buttons_go_from_milestone_to_milestone(
    walk_runs: tuple[fp4ref.Run, fp4ref.Run], open_players: Any
) -> None:
    run, _ = walk_runs
    assert run.trace is not None
    steps = list(milestones(run.trace))
    page = open_players(viz.play(run))
    page.evaluate(f"() => {PLAYER}.go(0)")
    page.locator(".fp4ref-player").focus()
    page.keyboard.press("]")
    page.locator("[data-act=after]").click()
    assert step_of(page) == steps[1]
    page.locator(".fp4ref-player").focus()
    page.keyboard.press("[")
    assert step_of(page) == steps[0]
    page.keyboard.press("[")
    assert step_of(page) == steps[0]
    assert page.locator("figcaption").inner_text() == "No milestone before this step."
    assert page.locator(".fp4ref-strip [data-step]").count() == len(steps)


def test_play_visits_milestones_only_and_stops_when_a_barrier_flips(
    walk_runs: tuple[fp4ref.Run, fp4ref.Run], open_players: Any
) -> None:
    run, _ = walk_runs
    assert run.trace is not None
    label = "accumulator.full[0]"
    flips = [
        event.step
        for event in run.trace
        for b in event.barrier
        if (b.space, b.label) == ("smem0", label) and b.before[0] != b.after[0]
    ]
    page = open_players(viz.play(run))
    page.evaluate(f"() => {PLAYER}.go(0)")
    page.locator(".fp4ref-pace summary").click()
    page.select_option("[data-act=stop]", label=f"SM 0 {label} flips")
    page.locator("[data-act=run]").click()
    assert step_of(page) == flips[0]
    page.locator("[data-act=run]").click()
    assert step_of(page) == flips[1]
    page.evaluate(f"() => {PLAYER}.go(0)")
    page.select_option("[data-act=speed]", "fast")
    page.select_option("[data-act=pace]", "milestones")
    page.locator("[data-act=play]").click()
    page.wait_for_function(f"() => {PLAYER}.machine.step === {flips[0]}")
    page.wait_for_timeout(300)
    assert step_of(page) == flips[0]
    visited = page.evaluate("() => document.querySelector('[data-act=play]').title")
    assert visited == "Play"


def test_it_runs_to_the_next_write_of_a_cell(
    walk_runs: tuple[fp4ref.Run, fp4ref.Run], open_players: Any
) -> None:
    run, _ = walk_runs
    assert run.trace is not None
    written = [
        event.step
        for event in run.trace
        for where in event.writes
        if where.space == "tmem0" and where.start == 0
    ]
    page = open_players(viz.play(run, view="tmem"))
    page.evaluate(f"() => {PLAYER}.go({written[0]})")
    page.locator(".fp4ref-pace summary").click()
    page.select_option("[data-act=stop]", "cell")
    page.locator("[data-act=run]").click()
    assert step_of(page) == written[1]
