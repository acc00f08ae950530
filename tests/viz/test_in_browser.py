"""test_in_browser: the player in a real Chromium, on a page without a kernel."""

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

import fp4ref
from fp4ref import viz
from fp4ref.errors import DeadlockError, LaneQuarterViolation
from fp4ref.hardware import tmem
from fp4ref.numerics import (
    ScaleFormat,
    decode_e2m1,
    encode_e2m1,
    encode_ue4m3,
    encode_ue8m0,
    quantize_blocks,
)
from fp4ref.viz import player as player_module
from fp4ref.viz.packet import COMPUTED, NOT_KEPT

DATA = Path(__file__).parents[1] / "data"
PLAYER = "document.querySelector('.fp4ref-player').fp4ref"
VIEWS = ("timeline", "barriers", "smem", "tmem", "scales", "mma", "tiles", "sides")
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


def test_a_wrong_byte_in_the_packet_is_noticed(
    small: fp4ref.Run, open_players: Any
) -> None:
    """The page multiplies by itself; a changed operand byte shows in its check."""
    player = viz.play(small)
    page = open_players(player)
    last = len(small.trace or []) - 1
    assert (
        page.evaluate(f"() => {{ {PLAYER}.go({last}); return {PLAYER}.machine.wrong }}")
        == []
    )
    wrong = page.evaluate(
        f"""() => {{
      const m = {PLAYER}.machine, i = m.columns.writes.findIndex((w, k) =>
        m.tables.operation[m.columns.operation[k]].endsWith('3d.load')
        && w.some(([, at]) => at >= 0));
      const at = m.columns.writes[i][0][1];
      m.payload[at] ^= 0x70; m.results.clear();
      m.checkpoints.length = 1; m.restore(m.checkpoints[0]);
      m.seek({last}); return m.wrong.length }}"""
    )
    assert wrong > 0


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
    page.locator("summary").click()
    for view in VIEWS:
        page.locator(f"[role=tab][data-view={view}]").click()
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


def test_keyboard_alone_plays_steps_and_rewinds(
    small: fp4ref.Run, open_players: Any
) -> None:
    page = open_players(viz.play(small))
    player = page.locator(".fp4ref-player")
    keys = page.keyboard

    def step() -> int:
        return int(player.get_attribute("data-step"))

    keys.press("Tab")
    assert page.evaluate("document.activeElement.className") == "fp4ref-player"
    for _ in range(3):
        keys.press("ArrowRight")
    assert step() == 3
    keys.press("ArrowLeft")
    assert step() == 2
    keys.press("PageDown")
    assert step() == 52
    keys.press("End")
    assert step() == len(small.trace or []) - 1
    keys.press("Home")
    assert step() == 0
    keys.press("2")
    assert player.get_attribute("data-view") == "barriers"
    keys.press("n")
    assert step() > 0
    keys.press("Home")
    keys.press("Space")
    page.wait_for_function(
        "+document.querySelector('.fp4ref-player').dataset.step >= 2"
    )
    keys.press("Space")
    held = step()
    page.wait_for_timeout(600)
    assert step() == held
    for _ in range(200):  # Tab reaches the tabs and a control of the view
        keys.press("Tab")
        if page.evaluate("document.activeElement.role") == "tab":
            break
    keys.press("ArrowRight")
    assert player.get_attribute("data-view") == "smem"
    assert page.evaluate("document.activeElement.role") == "tab"


def test_next_event_on_this_barrier(small: fp4ref.Run, open_players: Any) -> None:
    page = open_players(viz.play(small, view="barriers"))
    trace = small.trace
    assert trace is not None
    label = "mainloop.empty[1]"
    page.locator("[data-control=barrier]").select_option(label=label)
    want = [e.step for e in trace if any(b.label == label for b in e.barrier)]
    seen = []
    for _ in want:
        page.locator("[data-control=after]").click()
        seen.append(int(page.locator(".fp4ref-player").get_attribute("data-step")))
    assert seen == want if want[0] > 0 else seen == want[1:]


def test_a_link_leads_to_the_step(small: fp4ref.Run, open_players: Any) -> None:
    page = open_players(viz.play(small), query="?view=tmem&step=37")
    player = page.locator(".fp4ref-player")
    assert player.get_attribute("data-step") == "37"
    assert player.get_attribute("data-view") == "tmem"
    page.locator("[data-act=link]").click()
    assert (
        page.locator(".fp4ref-link a")
        .get_attribute("href")
        .endswith("?view=tmem&step=37")
    )


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


def test_one_scale_lights_up_in_all_four_pictures(open_players: Any) -> None:
    """A click in any picture chooses the scale that the layout puts there."""
    page = open_players(viz.scale_journey())
    for panel in range(4):
        area = page.locator(f'[data-area*=",126,{panel}"]').first
        box = area.bounding_box()
        page.mouse.click(box["x"] + 0.4 * box["width"], box["y"] + 0.7 * box["height"])
        row = int(page.locator("[data-control=row]").input_value())
        group = int(page.locator("[data-control=group]").input_value())
        fx, fy = 0.4, 0.7
        if panel == 0:
            assert (row, group) == (int(fy * 128), int(fx * 16))
        elif panel == 3:
            byte, lane = int(fx * 64), int(fy * 128) % 32
            assert (row, group) == (
                byte // 4 % 4 * 32 + lane,
                byte // 16 * 4 + byte % 4,
            )
        else:
            line, byte = int(fy * 32), int(fx * 16)
            assert row == byte // 4 * 32 + line
            assert group % 4 == byte % 4
        assert page.locator(".f-lit").count() == 3 + 4  # four lane quarters


def test_drag_over_a_tie(open_players: Any) -> None:
    player = viz.quantiser([6.0, *[0.0] * 15])
    page = open_players(player)
    page.locator("[data-control=element]").fill("1")
    for value, code in ((2.5, 2), (2.5001, 3), (3.5, 4), (-0.25, 0), (-0.2501, -0.5)):
        page.locator("[data-control=value]").fill(str(value))
        caption = page.locator(".fp4ref-picture").inner_text()
        assert f"= {code};" in caption.replace("−", "-"), (value, caption)
    dot = page.locator("[data-drag='1']")
    box = dot.bounding_box()
    page.mouse.move(box["x"] + 3, box["y"] + 3)
    page.mouse.down()
    page.mouse.move(box["x"] + 250, box["y"] + 3)
    page.mouse.up()
    assert float(page.locator("[data-control=value]").input_value()) > 1


def test_the_pages_arithmetic_is_the_outside_models(open_players: Any) -> None:
    """MMA-Sim's stored outputs, and the package's formats, against the script."""
    page = open_players(viz.swizzle())
    call = f"""(x) => {{
      const d = new Uint32Array(x.rows * x.columns);
      {PLAYER}.arithmetic.dotTile(x.rows, x.columns, Int8Array.from(x.a),
        Int8Array.from(x.b), x.sfa, x.sfb, x.format, Uint32Array.from(x.c), d);
      return Array.from(d) }}"""
    count = 0
    with np.load(DATA / "mmasim_golden.npz") as stored:
        for key in sorted({k.rsplit("/", 1)[0] for k in stored.files}):
            if "block16" not in key:
                continue
            part = {n: stored[f"{key}/{n}"] for n in ("a", "b", "sfa", "sfb", "c", "d")}

            def halves(packed: np.ndarray) -> list[int]:
                codes = np.stack([packed & 15, packed >> 4], -1).reshape(
                    len(packed), -1
                )
                return (2 * decode_e2m1(codes)).astype(int).ravel().tolist()

            got = page.evaluate(
                call,
                {
                    "rows": 128,
                    "columns": len(part["b"]),
                    "a": halves(part["a"]),
                    "b": halves(part["b"]),
                    "sfa": part["sfa"].ravel().tolist(),
                    "sfb": part["sfb"].ravel().tolist(),
                    "c": part["c"].ravel().tolist(),
                    "format": "UE8M0" if "ue8m0" in key else "UE4M3",
                },
            )
            assert (np.array(got, np.uint32) == part["d"].ravel()).all(), key
            count += len(got)
    assert count == 2 * 5 * 128 * 24


def test_the_pages_rounding_is_the_packages(open_players: Any) -> None:
    page = open_players(viz.swizzle())
    rng = np.random.default_rng(0)
    values = np.concatenate(
        [
            np.arange(-28, 29) / 4,
            np.array([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0]) * (1 + 2.0**-23),
            rng.standard_normal(200) * 10.0 ** rng.integers(-4, 4, 200),
        ]
    ).astype(np.float32)
    number = [float(v) for v in values]
    positive = [abs(v) for v in number]

    def js(name: str, xs: list[float]) -> np.ndarray:
        call = f"(xs) => xs.map((x) => {PLAYER}.arithmetic.{name}(x))"
        return np.array(page.evaluate(call, xs), np.uint8)

    assert (js("encodeE2m1", number) == encode_e2m1(values)).all()
    assert (js("encodeUe4m3", positive) == encode_ue4m3(np.abs(values))).all()
    assert (js("encodeUe8m0", positive) == encode_ue8m0(np.abs(values), "rp")).all()
    for scale_format in ScaleFormat:
        for _ in range(40):
            block = rng.standard_normal(16).astype(np.float32) * np.float32(
                2.0 ** rng.integers(-12, 12)
            )
            norm = float(np.float32(2.0 ** rng.uniform(-5, 9)))
            got = page.evaluate(
                f"""([v, n, f]) => {{
                const q = {PLAYER}.arithmetic.quantiseBlock(v, n, f);
                return [q.codes, q.scale] }}""",
                [[float(v) for v in block], norm, scale_format.name],
            )
            codes, scales = quantize_blocks(block, norm=norm, scale_format=scale_format)
            assert got == [codes.tolist(), int(scales[0])]


def test_no_serious_accessibility_violation(
    walk_runs: tuple[fp4ref.Run, fp4ref.Run], open_players: Any
) -> None:
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="axe is in the extra 'dev'"
    )
    for scheme in ("light", "dark"):
        page = open_players(viz.play(*walk_runs, step=1000), color_scheme=scheme)
        page.locator("summary").click()
        for view in VIEWS:
            page.locator(f"[role=tab][data-view={view}]").click()
            found = axe.Axe().run(page).response["violations"]
            serious = [v for v in found if v["impact"] in ("serious", "critical")]
            assert not serious, (view, scheme, json.dumps(serious, indent=1)[:3000])


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
    page.locator("summary").click()
    rows = page.locator(".fp4ref-twin tbody tr").all_inner_texts()
    assert len(rows) == len(caught.value.edges)
    page.locator("[data-view=barriers]").first.click()
    assert page.locator(".f-card.f-stuck").count() >= 1


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


def test_wide_operands_are_computed_right_in_the_page(
    wide: fp4ref.Run, open_players: Any
) -> None:
    page = open_players(viz.play(wide))
    last = len(wide.trace or []) - 1
    page.evaluate(f"() => {PLAYER}.go({last})")
    found = f"() => [{PLAYER}.machine.wrong.length, {PLAYER}.machine.results.size]"
    assert page.evaluate(found) == [0, 8]


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("E2M1_HALVES[pair & 15]", "E2M1_HALVES[pair >> 4]"),  # nibble
        ("(((linear >> 7) & 7) << 4)", "0"),  # swizzle
        ("(r >> 3) * stride", "(r >> 3) * 512"),  # stride
        ("(r >> 5) * 4;", "(r >> 6) * 4;"),  # scale column
        ("Math.floor(magnitude * pow2(", "Math.round(magnitude * pow2("),  # rounding
        ("FRACTION_BITS = 35", "FRACTION_BITS = 34"),  # bits kept
        ("S[x] * S[y] * 134217728", "S[x] * S[x] * 134217728"),  # scale of B
        ("if (operands.enable_input_d)", "if (false)"),  # accumulate
    ],
)
def test_a_wrong_rule_in_the_script_is_noticed(
    wide: fp4ref.Run,
    open_players: Any,
    monkeypatch: pytest.MonkeyPatch,
    right: str,
    wrong: str,
) -> None:
    script = player_module.esm()
    assert script.count(right) == 1
    monkeypatch.setattr(player_module, "esm", lambda: script.replace(right, wrong))
    page = open_players(viz.play(wide))
    last = len(wide.trace or []) - 1
    page.evaluate(f"() => {PLAYER}.go({last})")
    assert page.evaluate(f"() => {PLAYER}.machine.wrong.length") > 0


def test_a_click_in_one_view_picks_the_same_in_the_others(
    small: fp4ref.Run, open_players: Any
) -> None:
    """A cell of TMEM is a scale of the journey, or an element of the microscope."""
    assert small.trace is not None
    page = open_players(viz.play(small, view="tmem", step=len(small.trace) - 1))
    grid = page.locator("[data-grid]").bounding_box()

    def click(lane: int, column: int) -> None:
        x = grid["x"] + (column + 0.9) / 512 * grid["width"]
        page.mouse.move(x, grid["y"] + (lane + 0.9) / 128 * grid["height"])
        hovered = page.locator("figcaption").inner_text()
        assert f"lane {lane}, column {column}, " in hovered
        page.mouse.down()
        page.mouse.up()

    def shown(view: str, *names: str) -> list[str]:
        page.locator(f"[role=tab][data-view={view}]").click()
        values = [
            page.locator(f"[data-control={name}]").input_value() for name in names
        ]
        page.locator("[data-view=tmem]").first.click()
        return values

    click(70, 19)
    assert shown("mma", "m", "n") == ["70", "19"]
    click(37, 256 + 6)  # SFA: column 6 is K block 1, rows 64 to 95
    assert shown("scales", "operand", "row", "group") == ["SFA", str(64 + 5), "4"]
    page.locator("[data-view=scales]").first.click()
    page.locator("[data-control=row]").fill("33")
    page.locator("[data-control=group]").fill("15")
    lane, column = shown("tmem", "lane", "column")
    assert (lane, column) == ("1", str(256 + 3 * 4 + 1))


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
        "of 4",
        "stored",
    ]
    page = open_players(viz.play(run, view="tiles"))
    page.locator("summary").click()
    best = {}
    for step in [*range(0, len(run.trace), 97), len(run.trace) - 1]:
        page.evaluate(f"() => {PLAYER}.go({step})")
        for row in page.locator(".fp4ref-twin tbody tr").all_inner_texts():
            tile, state, _ = row.split("\t")
            (now,) = [i for i, w in enumerate(order) if state == w or w == state[2:6]]
            assert now >= best.get(tile, 0), (step, row)
            best[tile] = now
    assert list(best.values()) == [len(order) - 1] * 6


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
    config = fp4ref.GemmConfig(**options)
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
    page.locator("summary").click()
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


@pytest.mark.parametrize("text", ["1.5", "-1", "999", "", "1e99"])
def test_a_number_that_cannot_be_is_refused(
    small: fp4ref.Run, open_players: Any, text: str
) -> None:
    """The picture stays, the field says that it is wrong, and returns when left."""
    page = open_players(viz.play(small, step=len(small.trace or []) - 1))
    for view, name in (("mma", "m"), ("tmem", "column"), ("smem", "row")):
        page.locator(f"[role=tab][data-view={view}]").click()
        before = page.locator(".fp4ref-picture").inner_html()
        field = page.locator(f"[data-control={name}]")
        kept = field.input_value()
        field.fill(text)
        assert field.get_attribute("aria-invalid") == "true"
        assert page.locator(".fp4ref-picture").inner_html() == before
        page.locator(".fp4ref-player").focus()
        assert field.input_value() == kept


def test_the_quantiser_lands_on_ties_and_refuses_no_scale(open_players: Any) -> None:
    page = open_players(viz.quantiser())
    page.locator("summary").click()
    page.locator(".fp4ref-twin tbody tr").first.wait_for()
    ties = {0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0}
    for element in range(1, 15):
        page.locator("[data-control=element]").fill(str(element))
        page.locator("[data-control=tie]").click()
        row = page.locator(".fp4ref-twin tbody tr").nth(element).inner_text()
        _, value, scaled, *_ = row.split("\t")
        assert abs(float(scaled)) in ties, row
        shown = page.locator("[data-control=value]").input_value()
        assert np.float32(shown) == np.float32(value)
    for text in ("0", "-1", "1e-300", "1e300"):
        page.locator("[data-control=norm]").fill(text)
        assert page.locator("[data-control=norm]").get_attribute("aria-invalid")
    page.locator(".fp4ref-player").focus()
    assert page.locator("[data-control=norm]").input_value() == "1"


def test_scales_outside_a_small_matrix_are_said_to_be(open_players: Any) -> None:
    rng = np.random.default_rng(2)
    qa = fp4ref.quantize(rng.standard_normal((130, 96)).astype(np.float32))
    qb = fp4ref.quantize(rng.standard_normal((72, 96)).astype(np.float32))
    page = open_players(viz.play(fp4ref.run(qa, qb), view="scales"))
    assert page.locator("[data-control=group]").input_value() == "5"
    assert "outside the matrix" not in page.locator(".fp4ref-picture").inner_text()
    page.locator("[data-control=group]").fill("6")
    assert page.locator(".fp4ref-picture").inner_text().count("outside the matrix") == 1
    page.locator("[data-control=group]").fill("10")
    assert page.locator(".fp4ref-picture").inner_text().count("outside the matrix") == 2
