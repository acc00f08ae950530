"""Views look where the event acts, until the reader picks a place."""

from __future__ import annotations

from typing import Any

import pytest
from player_page import PLAYER

import fp4ref
from fp4ref import viz
from fp4ref.trace import Event, RecordedPlan, Trace


@pytest.fixture
def page(walk_runs: tuple[fp4ref.Run, fp4ref.Run], open_players: Any) -> Any:
    return open_players(viz.play(walk_runs[0], sms=(0, 1), tiles=9))


@pytest.fixture
def trace(walk_runs: tuple[fp4ref.Run, fp4ref.Run]) -> Trace:
    found = walk_runs[0].trace
    assert found is not None
    return found


def landings(trace: Trace, operation: str) -> list[Event]:
    found = [e for e in trace if e.operation == operation and e.kind == "land"]
    return found[:: max(1, len(found) // 6)]


def control(page: Any, name: str) -> str:
    return str(page.locator(f"[data-control={name}]").input_value())


def go(page: Any, step: int, view: str) -> None:
    page.evaluate(f"() => {{ {PLAYER}.show('{view}'); {PLAYER}.go({step}); }}")


def test_the_ring_shows_the_stage_that_a_load_fills(page: Any, trace: Trace) -> None:
    plan = RecordedPlan.required(trace.meta)
    seen = set()
    for event in landings(trace, "cp.async.bulk.tensor.3d.load"):
        where = event.writes[0]
        offset = where.start - trace.base[where.space]
        (part,) = (p for p in plan.smem if 0 <= offset - p.offset < p.nbytes)
        go(page, event.step, "smem")
        shown = control(page, "sm"), control(page, "operand"), control(page, "stage")
        assert shown == (where.space[4:], part.name, str(part.stage))
        seen.add(shown)
    assert len(seen) > 3


def test_tmem_shows_the_cell_that_an_mma_writes(page: Any, trace: Trace) -> None:
    seen = set()
    for event in landings(trace, "tcgen05.mma"):
        go(page, event.step, "tmem")
        shown = control(page, "sm"), control(page, "lane"), control(page, "column")
        where = event.writes[0]
        assert shown == (where.space[4:], "0", str(where.start % 2048 // 4))
        seen.add(shown)
    assert len(seen) > 2


def test_barriers_show_the_one_that_changes(page: Any, trace: Trace) -> None:
    for event in landings(trace, "tcgen05.commit"):
        go(page, event.step, "barriers")
        chosen = page.locator("[data-control=barrier] option:checked").inner_text()
        change = event.barrier[0]
        assert chosen == f"SM {change.space[4:]} {change.label}"
        assert control(page, "sm") == change.space[4:]


def test_a_pick_ends_it_and_the_box_begins_it_again(page: Any, trace: Trace) -> None:
    first, *_, last = landings(trace, "tcgen05.mma")
    go(page, first.step, "tmem")
    page.locator("[data-control=column]").fill("300")
    assert not page.locator("[data-act=follow]").is_checked()
    go(page, last.step, "tmem")
    assert control(page, "column") == "300"
    page.locator("[data-act=follow]").check()
    assert control(page, "column") == str(last.writes[0].start % 2048 // 4)


def test_a_wider_timeline_is_no_pick(page: Any) -> None:
    go(page, 100, "timeline")
    page.locator("[data-control=span]").select_option(index=0)
    assert page.locator("[data-act=follow]").is_checked()
