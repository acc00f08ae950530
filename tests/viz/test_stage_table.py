"""The table of fills, against the barriers' recorded phases and the plan."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from player_page import PLAYER

import fp4ref
from fp4ref import viz
from fp4ref.trace import RecordedPlan, Trace
from fp4ref.viz.stage_table import COLUMNS, fills


@pytest.fixture(scope="module", params=["emulator", "ptx"])
def trace(request: Any) -> Trace:
    rng = np.random.default_rng(8)
    a, b = (
        fp4ref.quantize(rng.standard_normal((rows, 1536), np.float32))
        for rows in (384, 128)
    )
    run = fp4ref.run(a, b, backend=request.param, schedule="timed", sms=2, trace=True)
    assert run.trace is not None
    return run.trace


def flips(trace: Trace, side: str) -> Counter[tuple[int, int]]:
    """Count the completed phases of a side of the ring, by SM and stage."""
    return Counter(
        (int(b.space[4:]), int(b.label.rpartition("[")[2][:-1]))
        for event in trace
        for b in event.barrier
        if b.label.startswith(f"mainloop.{side}") and b.before[0] != b.after[0]
    )


def test_each_k_tile_of_each_tile_is_a_row(trace: Trace) -> None:
    found = fills(trace)
    plan = RecordedPlan.required(trace.meta)
    tiles, k = 3, trace.meta["shape"]["k"]
    assert len(found) == tiles * plan.k_tiles(k)
    rows = Counter((each.sm, each.stage) for each in found)
    assert rows == flips(trace, "full") == flips(trace, "empty")


def test_a_fill_goes_through_its_columns_in_order(trace: Trace) -> None:
    """In steps, and in the clocks of the model."""
    for each in fills(trace):
        steps = [each.steps[name] for name in COLUMNS]
        assert steps == sorted(steps)
        assert steps[0] >= 0
        times = [trace.events[step].end for step in steps]
        assert times == sorted(times)


def test_a_column_is_the_event_that_it_says(trace: Trace) -> None:
    for each in fills(trace):
        for name, side in (("full", "full"), ("empty", "empty")):
            labels = [
                (b.space, b.label)
                for b in trace.events[each.steps[name]].barrier
                if b.before[0] != b.after[0]
            ]
            assert (f"smem{each.sm}", f"mainloop.{side}[{each.stage}]") in labels
        for name, operation, kind in (
            ("copy", "tcgen05.cp", "issue"),
            ("mma", "tcgen05.mma", "issue"),
            ("done", "tcgen05.mma", "land"),
        ):
            event = trace.events[each.steps[name]]
            assert (event.operation, event.kind) == (operation, kind)
            assert event.sm == each.sm


def test_a_stage_is_loaded_again_only_when_it_was_given_back(trace: Trace) -> None:
    last: dict[tuple[int, int], int] = {}
    for each in fills(trace):
        key = each.sm, each.stage
        assert each.steps["load"] > last.get(key, -1)
        assert each.fill == sum(
            (other.sm, other.stage) == key and other.steps["load"] < each.steps["load"]
            for other in fills(trace)
        )
        last[key] = each.steps["empty"]


def test_waits_are_those_of_the_two_warps(trace: Trace) -> None:
    waits = Counter(
        (event.issued, event.step)
        for event in trace
        if event.operation.startswith("mbarrier.try_wait") and event.issued >= 0
    )
    found = [span for f in fills(trace) for span in (f.mma_waits, f.load_waits) if span]
    assert found
    assert not Counter(found) - waits


def test_a_trace_without_a_plan_has_no_table() -> None:
    assert fills(Trace()) == []


def test_the_picture_jumps_and_its_text_has_every_row(
    trace: Trace, open_players: Any
) -> None:
    found = [each for each in fills(trace) if each.sm == 0]
    page = open_players(viz.play(trace, view="stages"))
    page.evaluate(f"() => {PLAYER}.go({found[2].steps['mma']})")
    page.locator(".fp4ref-twin summary").click()
    rows = page.locator(".fp4ref-twin tbody tr").all_inner_texts()
    clocks = [round(trace.events[s].end) for s in found[2].steps.values()]
    assert len(rows) == len(found)
    assert rows[2].split("\t")[3:] == [f"{clock:,}" for clock in clocks]
    target = found[1].steps["full"]
    page.locator(f".fp4ref-picture [data-step='{target}']").first.click()
    step = page.locator(".fp4ref-player").get_attribute("data-step")
    assert step == str(target)
