"""The player in a real Chromium, on a page without a kernel: steps, views, faults."""

from __future__ import annotations

import base64
import json
import random
import re
from pathlib import Path
from typing import Any
from unittest.mock import patch
from xml.etree import ElementTree

import numpy as np
import pytest
from player_page import PLAYER, VIEWS

import fp4ref
from fp4ref import viz
from fp4ref.errors import DeadlockError, LaneQuarterViolation
from fp4ref.hardware import tmem
from fp4ref.numerics import ScaleFormat
from fp4ref.viz.packet import COMPUTED, NOT_KEPT

READ = f"""([steps]) => {{
  const m = {PLAYER}.machine, out = [];
  const text = (a) => btoa(Array.from(a, (c) => String.fromCharCode(c)).join(""));
  for (const s of steps) {{
    m.seek(s);
    const spaces = {{}};
    for (const [n, v] of Object.entries(m.spaces))
      spaces[n] = [text(v.bytes), text(v.known)];
    out.push([spaces, m.barriers.map((b) => [b.live, b.phase, b.pending, b.tx])]);
  }}
  return out;
}}"""


def decoded(text: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), np.uint8)


def test_rewind_shows_what_the_trace_recomputes(
    small: fp4ref.Run, open_players: Any, rotating_seed: int
) -> None:
    """100 random steps, forward and back, against `Trace.at` in Python: every byte."""
    trace = small.trace
    assert trace is not None
    steps = random.Random(rotating_seed).choices(range(len(trace)), k=100)
    page = open_players(viz.play(small))
    shown = page.evaluate(READ, [steps])
    barriers: dict[int, dict[tuple[str, int], tuple[int, int, int]]] = {}
    now: dict[tuple[str, int], tuple[int, int, int]] = {}
    for event in trace:
        for change in event.barrier:
            now[change.space, change.address] = change.after
        barriers[event.step] = dict(now)
    checked = 0
    for step, (spaces, cards) in zip(steps, shown, strict=True):
        state = trace.at(step)
        for space, (data, known) in spaces.items():
            written = state.written[space]
            assert (decoded(known) == written.astype(np.uint8)).all(), (step, space)
            same = decoded(data)[written] == state.memory[space][written]
            assert same.all(), (step, space)
            checked += int(written.sum())
        live = [tuple(c[1:]) for c in cards if c[0]]
        assert sorted(live) == sorted(barriers[step].values()), step
    assert checked > 10_000_000


def test_rewind_equals_a_fresh_start(small: fp4ref.Run, open_players: Any) -> None:
    """Checkpoints change nothing: the same steps in both orders give the same bytes."""
    assert small.trace is not None
    steps = list(range(0, len(small.trace), 37))
    page = open_players(viz.play(small))
    there = page.evaluate(READ, [steps])
    back = page.evaluate(READ, [steps[::-1]])
    assert there == back[::-1]


def test_the_walks_page_is_small_and_whole(
    walk_runs: tuple[fp4ref.Run, fp4ref.Run], open_players: Any
) -> None:
    run, kernel = walk_runs
    player = viz.play(run, kernel)
    page = open_players(player)
    assert len(player.static_html()) < 3_000_000
    found = page.evaluate(
        f"""() => {{ const m = {PLAYER}.machine; {PLAYER}.go(m.length - 1);
        return [m.length, m.wrong.length, m.results.size] }}"""
    )
    assert run.trace is not None
    writes = json.loads(
        page.evaluate(f"() => JSON.stringify({PLAYER}.machine.columns.writes)")
    )
    kept = sum(at == COMPUTED for w in writes for _, at in w)
    lost = sum(at == NOT_KEPT for w in writes for _, at in w)
    k_tiles = 1536 // 256
    assert kept == 2 * 4 * k_tiles  # the MMAs of two tiles
    assert lost > 0
    assert found == [len(run.trace), 0, kept]


@pytest.mark.rotating(2)
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_view_draws_and_speaks(
    walk_runs: tuple[fp4ref.Run, fp4ref.Run],
    open_players: Any,
    width: int,
    scheme: str,
) -> None:
    page = open_players(
        viz.play(*walk_runs, step=1000),
        viewport={"width": width, "height": 900},
        color_scheme=scheme,
    )
    page.locator(".fp4ref-twin summary").click()
    # The browser says later that it has opened, and the twin is drawn then.
    page.locator(".fp4ref-twin tbody tr").first.wait_for(state="attached")
    for view in VIEWS:
        page.evaluate(f"() => {PLAYER}.show('{view}')")
        picture = page.locator(".fp4ref-picture svg")
        assert picture.get_attribute("aria-label"), view
        assert picture.locator("rect").count() > 5, view
        assert page.locator(".fp4ref-twin tbody tr").count() > 0, view
        box = picture.bounding_box()
        assert box["x"] + box["width"] <= width, view
        raw = page.locator(".fp4ref-player").inner_text()
        for bad in ("undefined", "NaN", "[object"):
            assert bad not in raw, (view, bad)
        assert not [k for k in raw.split() if k.startswith(view + ".")], view
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_every_picture_is_saved_with_its_text(
    walk_runs: tuple[fp4ref.Run, fp4ref.Run], open_players: Any
) -> None:
    page = open_players(viz.play(*walk_runs, step=1000))
    for view in VIEWS:
        page.locator(f"[role=tab][data-view={view}]").click()
        label = page.locator(".fp4ref-picture svg").get_attribute("aria-label")
        with page.expect_download() as download:
            page.locator("[data-act=save]").click()
        assert download.value.suggested_filename == f"fp4ref-{view}-1000.svg"
        picture = ElementTree.parse(download.value.path()).getroot()
        space = "{http://www.w3.org/2000/svg}"
        assert picture.find(f"{space}title").text == label
        assert len(picture.find(f"{space}desc").text.splitlines()) > 1, view
        assert "var(--" not in Path(download.value.path()).read_text(), view
        page.locator("[data-act=link]").click()
        address = page.locator(".fp4ref-link a").get_attribute("href")
        assert address.endswith(f"?view={view}&step=1000")


def test_without_scripts_the_text_shows(small: fp4ref.Run, open_players: Any) -> None:
    player = viz.play(small, step=60)
    page = open_players(player, java_script_enabled=False)
    shown = page.locator(".fp4ref-fallback").inner_text()
    assert player.text().splitlines()[0] in shown


@pytest.mark.rotating(1)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_serious_accessibility_violation(
    walk_runs: tuple[fp4ref.Run, fp4ref.Run], open_players: Any, scheme: str
) -> None:
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="axe is in the extra 'dev'"
    )
    page = open_players(viz.play(*walk_runs, step=1000), color_scheme=scheme)
    page.locator(".fp4ref-twin summary").click()
    for view in VIEWS:
        page.locator(f"[role=tab][data-view={view}]").click()
        found = axe.Axe().run(page).response["violations"]
        serious = [v for v in found if v["impact"] in ("serious", "critical")]
        assert not serious, (view, scheme, json.dumps(serious, indent=1)[:3000])


@pytest.mark.rotating(1)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_axe_finds_nothing_in_the_microscope(
    open_players: Any, scheme: str, width: int
) -> None:
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="axe is in the extra 'dev'"
    )
    size = {"width": width, "height": 900}
    page = open_players(viz.quantiser(), color_scheme=scheme, viewport=size)
    page.locator(".fp4ref-twin summary").click()
    for view in ("quantiser", "recipes"):
        page.evaluate(f"() => {PLAYER}.show('{view}')")
        found = axe.Axe().run(page).response["violations"]
        serious = [v for v in found if v["impact"] in ("serious", "critical")]
        assert not serious, (view, json.dumps(serious, indent=1)[:3000])


def test_motion_is_reduced_on_request(small: fp4ref.Run, open_players: Any) -> None:
    page = open_players(viz.play(small), reduced_motion="reduce")
    button = "document.querySelector('.fp4ref-bar button')"
    style = f"getComputedStyle({button}).transitionDuration"
    assert page.evaluate(style) in ("0s", "")


def test_a_deadlock_is_drawn(open_players: Any) -> None:
    """The wait-for graph: every edge of the error is in picture and table."""
    q = fp4ref.quantize(np.ones((128, 2048), np.float32))
    with (
        patch("fp4ref.gemm.mma_warp.release_stage", lambda warp, stage: None),
        pytest.raises(DeadlockError) as caught,
    ):
        fp4ref.run(q, q)
    player = viz.fault(caught.value)
    page = open_players(player)
    assert page.locator(".fp4ref-player").get_attribute("data-view") == "fault"
    assert "DeadlockError" in page.locator(".fp4ref-picture").inner_text()
    page.locator(".fp4ref-twin summary").click()
    rows = page.locator(".fp4ref-twin tbody tr").all_inner_texts()
    assert len(rows) == len(caught.value.edges)
    root = caught.value.root
    assert root is not None
    assert page.locator(".f-card.f-root").count() == 1
    assert root.what in page.locator(".fp4ref-picture").inner_text()
    page.locator("[data-view=barriers]").first.click()
    assert page.locator(".f-card.f-stuck").count() >= 1
    page.locator("[data-view=fault]").first.click()
    page.get_by_role("button", name="Go to the step where it went wrong").click()
    assert page.locator(".fp4ref-player").get_attribute("data-step") == str(root.step)


def test_an_illegal_access_is_marked_in_tmem(open_players: Any) -> None:
    right = tmem.ld

    def wrong_quarter(warp: Any, taddr: int, *rest: Any, **more: Any) -> Any:
        return right(warp, taddr ^ 32 << 16, *rest, **more)

    q = fp4ref.quantize(np.ones((128, 256), np.float32))
    with (
        patch.object(tmem, "ld", wrong_quarter),
        pytest.raises(LaneQuarterViolation) as caught,
    ):
        fp4ref.run(q, q)
    page = open_players(viz.fault(caught.value))
    page.locator("[data-view=tmem]").first.click()
    mark = page.locator(".f-mark.f-illegal")
    lane = int(caught.value.where.split("0x")[1][:4], 16)
    area, grid = mark.bounding_box(), page.locator("[data-grid]").bounding_box()
    assert abs(area["y"] + 1 - grid["y"] - lane / 128 * grid["height"]) < 2
    assert "illegal access" in page.locator(".fp4ref-picture").inner_text()


def test_every_tile_ends_stored(
    walk_runs: tuple[fp4ref.Run, fp4ref.Run], open_players: Any
) -> None:
    """A tile is handed out, loaded, multiplied, stored; never back."""
    run, _ = walk_runs
    assert run.trace is not None
    order = [
        "not handed out",
        "handed out",
        "loading",
        "MMA",
        "summed",
        "of 4 boxes stored",
        "stored",
    ]
    page = open_players(viz.play(run, view="tiles"))
    page.locator(".fp4ref-twin summary").click()
    best = {}
    for step in [*range(0, len(run.trace), 97), len(run.trace) - 1]:
        page.evaluate(f"() => {PLAYER}.go({step})")
        for row in page.locator(".fp4ref-twin tbody tr").all_inner_texts():
            tile, state, _ = row.split("\t")
            if not tile.startswith("("):  # an answer of launch control
                continue
            now = order.index(state.lstrip("1234 "))
            assert now >= best.get(tile, 0), (step, row)
            best[tile] = now
    assert list(best.values()) == [len(order) - 1] * 6


@pytest.mark.rotating(2)
@pytest.mark.parametrize(
    ("options", "backend"),
    [
        ({"tile_n": 64}, "emulator"),
        ({"d_format": "nvfp4", "sfd_format": ScaleFormat.UE4M3}, "emulator"),
        ({"d_format": "bf16", "scheduler": "static"}, "emulator"),
        ({}, "ptx"),
    ],
    ids=str,
)
def test_every_configuration_plays(
    open_players: Any, options: dict[str, Any], backend: Any
) -> None:
    """Odd tiles, other outputs, and the compiled kernel's own trace."""
    rng = np.random.default_rng(8)
    qa = fp4ref.quantize(rng.standard_normal((130, 512)).astype(np.float32))
    qb = fp4ref.quantize(rng.standard_normal((200, 512)).astype(np.float32))
    config = fp4ref.GemmConfig.nvfp4(**options)
    run = fp4ref.run(qa, qb, config=config, backend=backend, sms=1)
    assert run.trace is not None
    page = open_players(viz.play(run, step=len(run.trace) - 1))
    for name in page.locator("[role=tab]").all():
        name.click()
        assert page.locator(".fp4ref-picture rect").count() > 3
        assert "undefined" not in page.locator(".fp4ref-player").inner_text()
    assert page.evaluate(f"() => {PLAYER}.machine.wrong") == []
    assert page.evaluate(f"() => {PLAYER}.machine.results.size") > 0


def test_a_trace_of_an_unknown_kernel_plays(
    small: fp4ref.Run, open_players: Any
) -> None:
    """Without a configuration there are no maps, and the rest still works."""
    trace = small.trace
    assert trace is not None
    bare = fp4ref.Trace(trace.events, trace.deltas, trace.images, trace.base, {})
    page = open_players(viz.play(bare, step=len(trace) - 1))
    tabs = page.locator("[role=tab]").all()
    names = [tab.get_attribute("data-view") for tab in tabs]
    assert names == ["timeline", "barriers", "tmem", "mma"]
    for tab in tabs:
        tab.click()
        assert page.locator(".fp4ref-picture rect").count() > 3
        assert "undefined" not in page.locator(".fp4ref-player").inner_text()
    assert page.evaluate(f"() => {PLAYER}.machine.wrong") == []


def test_stuck_barriers_are_the_ones_that_the_error_names(open_players: Any) -> None:
    """By memory and address: "clc.full[1]" ends in "c.full[1]", and SMs share names."""
    q, w = (fp4ref.quantize(np.ones((n, 2560), np.float32)) for n in (256, 128))
    with (
        patch("fp4ref.gemm.mma_warp.release_stage", lambda warp, stage: None),
        pytest.raises(DeadlockError) as caught,
    ):
        fp4ref.run(q, w, sms=2)
    page = open_players(viz.fault(caught.value))
    page.locator("[data-view=barriers]").first.click()
    page.locator(".fp4ref-twin summary").click()
    rows = [
        row.split("\t")
        for row in page.locator(".fp4ref-twin tbody tr").all_inner_texts()
    ]
    waited = {row[0] for row in rows if "warp" in row[5]}
    named = re.findall(
        r"mbarrier smem(\d) 0x\w+ \((.+?)\)", " ".join(e[1] for e in caught.value.edges)
    )
    assert waited == {f"SM {sm} {label}" for sm, label in named}
    assert {sm for sm, _ in named} == {"0", "1"}
