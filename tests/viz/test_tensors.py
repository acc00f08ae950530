"""The pictures of A, B and D, against the operands and the trace's hardware events."""

from __future__ import annotations

from typing import Any

import pytest
from player_page import PLAYER

import fp4ref
from fp4ref import viz
from fp4ref.evidence.hardware_events import HardwareEvent, hardware_events

BOXES = """(all) => all.map((r) => ["x", "y", "width", "height"].map(
  (name) => +r.getAttribute(name)))"""
MATRICES = "rect.f-cell[data-tip]"
E2M1 = (0, 0.5, 1, 1.5, 2, 3, 4, 6)
OWN = {
    "A": lambda key: (key.m, key.k),
    "B": lambda key: (key.n, key.k),
    "SFA": lambda key: (key.m, key.k),
    "D": lambda key: (key.m, key.n),
}
"""What tells a box of a tensor from its others."""


def go(page: Any, step: int) -> dict[str, list[str]]:
    page.evaluate(f"() => {{ {PLAYER}.show('tensors'); {PLAYER}.go({step}); }}")
    rows = page.locator(".fp4ref-twin tbody tr").all_inner_texts()
    return {row.split("\t")[0]: row.split("\t")[1:] for row in rows}


def framed(page: Any, matrix: int) -> tuple[float, ...]:
    """Return the ends of the frame in a matrix, as fractions of it."""
    x, y, w, h = page.locator(MATRICES).evaluate_all(BOXES)[matrix]
    for left, top, wide, high in page.locator("rect.f-frame").evaluate_all(BOXES):
        if x - 2 <= left < x + w and y - 2 <= top < y + h:
            ends = (left + 1 - x) / w, (top + 1 - y) / h
            return *ends, (left + wide - 1 - x) / w, (top + high - 1 - y) / h
    raise AssertionError(f"matrix {matrix} has no frame")


def check_frames(page: Any, found: HardwareEvent) -> None:
    """Frames and words of an MMA: its k-tile, its tile, its block of K."""
    key, rows = found.key, go(page, found.event.step)
    first, near = key.k + 64 * key.block, pytest.approx
    a = f"A rows {key.m} to {key.m + 127}, K {key.k} to {key.k + 255}"
    assert rows["A"][0] == a
    assert rows["D"][0] == f"D rows {key.m} to {key.m + 127}, columns 0 to 127"
    assert rows["SFA"][0].endswith(f"K {first} to {first + 63}")
    said = f"K {first} to {first + 63}, of k-tile {key.k // 256} of"
    assert said in page.locator("figcaption").inner_text()
    k0, k1, m0, m1 = key.k / 512, key.k / 512 + 0.5, key.m / 256, key.m / 256 + 0.5
    assert framed(page, 0) == near((k0, m0, k1, m1), abs=0.01)
    assert framed(page, 1) == near((0, k0, 1, k1), abs=0.01)
    assert framed(page, 2) == near((0, m0, 1, m1), abs=0.01)


def check_value(page: Any, a: fp4ref.BlockScaled, row: int, k: int) -> None:
    """The value of one element of A, under the pointer."""
    x, y, w, h = page.locator(MATRICES).evaluate_all(BOXES)[0]
    svg = page.locator(".fp4ref-picture svg").bounding_box()
    page.mouse.move(
        svg["x"] + x + (k + 0.5) / 512 * w, svg["y"] + y + (row + 0.5) / 256 * h
    )
    said = page.locator("figcaption").inner_text()
    code = int(a.codes[row, k])
    value = E2M1[code & 7] * (-1 if code & 8 else 1)
    assert said.startswith(f"A row {row}, column {k}: {value:g};"), said


def test_matrices_show_what_the_trace_says(
    whole: viz.Player,
    scheduled: dict[str, fp4ref.Run],
    scheduled_operands: tuple[fp4ref.BlockScaled, ...],
    open_players: Any,
) -> None:
    trace = scheduled["timed"].trace
    assert trace is not None
    events = list(hardware_events(trace).values())
    page = open_players(whole, viewport={"width": 1280, "height": 1200})
    page.locator(".fp4ref-twin summary").click()
    mmas = [each for each in events if each.key.tensor == "accumulator"]
    for found in mmas[::5]:
        check_frames(page, found)
    for step in (events[3].event.step, events[-5].event.step, len(trace) - 1):
        rows = go(page, step)
        for name, own in OWN.items():
            landed = [e for e in events if e.event.step <= step]
            boxes = {own(e.key) for e in landed if e.key.tensor == name}
            assert rows[name][1].split()[0] == str(len(boxes)), (name, step)
    assert rows["D"][1] == "8 of 8 boxes"
    for row, k in ((0, 0), (37, 300), (130, 129), (255, 511)):
        check_value(page, scheduled_operands[0], row, k)
    page.keyboard.press("Home")
    step = 0
    for found in sorted(
        e.event.step for e in events if e.key.tensor in ("A", "B", "SFA", "SFB", "D")
    )[:3]:
        page.locator(".fp4ref-player").press("n")
        step = int(page.locator(".fp4ref-player").get_attribute("data-step"))
        assert step == found
