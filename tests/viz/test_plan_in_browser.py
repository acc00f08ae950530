"""The player shows the plan that the trace holds, or says that there is none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from drawn_words import WORDS, words_that_meet

import fp4ref
from fp4ref import viz
from fp4ref.errors import InputError
from fp4ref.trace import Trace
from fp4ref.viz.packet import trace_packet
from fp4ref.viz.run_scene import available

PLAYER = "document.querySelector('.fp4ref-player').fp4ref"


def with_meta(run: fp4ref.Run, meta: dict[str, Any]) -> Trace:
    trace = run.trace
    assert trace is not None
    return Trace(trace.events, trace.deltas, trace.images, trace.base, meta)


@pytest.fixture
def without_plan(small: fp4ref.Run) -> Trace:
    """A trace as releases before this one wrote it: a configuration, and no plan."""
    return with_meta(small, {k: v for k, v in small.meta.items() if k != "plan"})


def test_the_packet_holds_the_plan_of_the_trace(small: fp4ref.Run) -> None:
    assert small.trace is not None
    header, _ = trace_packet(small.trace)
    assert header["meta"]["plan"] == fp4ref.plan(small.config).to_dict()


@pytest.mark.parametrize("view", ["smem", "scales", "tiles"])
def test_a_view_that_needs_the_plan_says_so(without_plan: Trace, view: str) -> None:
    with pytest.raises(InputError, match="does not hold its kernel's plan"):
        viz.play(without_plan, view=view)
    with pytest.raises(InputError, match="does not hold its kernel's plan"):
        viz.play(without_plan, views=[view])


def test_a_view_that_is_missing_for_another_reason_does_not(small: fp4ref.Run) -> None:
    with pytest.raises(InputError, match="not among the views") as raised:
        viz.play(small, view="smem", views=["timeline"])
    assert "plan" not in str(raised.value)


def test_the_other_views_are_there_without_a_plan(without_plan: Trace) -> None:
    player = viz.play(without_plan, step=len(without_plan) - 1)
    header, _ = trace_packet(without_plan)
    assert available(header) == ["timeline", "barriers", "tmem", "mma"]
    assert f"Step {len(without_plan) - 1} of" in player.text()


def test_roles_are_those_of_the_plan(small: fp4ref.Run, open_players: Any) -> None:
    """Also of one whose warps come in another order."""
    warps = small.meta["plan"]["warps"]
    mma, scheduler = warps[0], warps[1]
    swapped = [mma | {"first": 1}, scheduler | {"first": 0}, *warps[2:]]
    other = small.meta | {"plan": small.meta["plan"] | {"warps": swapped}}
    without = {k: v for k, v in small.meta.items() if k != "plan"}
    found = [
        lane_names(open_players(viz.play(with_meta(small, meta))))
        for meta in (small.meta, other, without)
    ]
    assert found[0] >= {"warp 0 MMA", "warp 1 tile scheduler", "warp 7 epilogue"}
    assert found[1] >= {"warp 1 MMA", "warp 0 tile scheduler", "warp 7 epilogue"}
    assert found[2] >= {f"warp {i} role not recorded" for i in (0, 1, 7)}


def lane_names(page: Any) -> set[str]:
    """Return the names beside the lanes, each with the role after it."""
    texts = page.locator(".fp4ref-picture svg text").all_text_contents()
    return {text for text in texts if text.startswith("warp")}


@pytest.mark.parametrize("wanted", [32, 64])
def test_boxes_of_a_tile_follow_the_plan(
    small: fp4ref.Run, open_players: Any, wanted: int
) -> None:
    meta = small.meta | {"plan": small.meta["plan"] | {"subtile_n": wanted}}
    trace = with_meta(small, meta)
    stores = [e.step for e in trace if e.kind == "land" and e.agent == "tma"]
    second = [s for s in stores if trace.events[s].operands["tensor"] == "D"][1]
    page = open_players(viz.play(trace, step=second, view="tiles"))
    shown = page.locator(".fp4ref-picture").inner_text()
    said = "stored" if wanted == 64 else "2 of 4 boxes"
    assert said in shown


def test_tiles_lie_as_d_is_written(open_players: Any) -> None:
    """Rows m go down and columns n to the right, over the whole width."""
    q, w = (fp4ref.quantize(np.ones((n, 256), np.float32)) for n in (128, 384))
    run = fp4ref.run(q, w)
    for width in (1280, 390):
        page = open_players(
            viz.play(run, view="tiles"), viewport={"width": width, "height": 900}
        )
        first, last = (
            page.locator(f"[data-tile='0,{n}']").bounding_box() for n in (0, 2)
        )
        assert first["y"] == last["y"]
        picture = page.locator(".fp4ref-picture svg").bounding_box()
        assert last["x"] + last["width"] - first["x"] > 0.8 * picture["width"]
        assert words_that_meet(page.evaluate(WORDS)) == []
