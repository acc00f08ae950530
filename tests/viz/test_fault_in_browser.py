"""The picture of a fault: roles, what is missing and whose it is, and where to look."""

from __future__ import annotations

import re
from typing import Any

import pytest
from drawn_words import WORDS, words_that_meet

from fp4ref import viz
from fp4ref.errors import DeadlockError, HardwareFault
from fp4ref.evidence.faults import GALLERY, run_fault
from fp4ref.hardware.order.race import RaceFault


def caught(name: str) -> HardwareFault:
    """Run a mistake of the gallery in the emulator, up to its fault."""
    found = run_fault(GALLERY[name], "emulator").fault
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("name", "where"),
    [("expect-too-many", "tma_loader.py"), ("phase-never-flips", "tma_loader.py")],
)
def test_a_deadlock_says_what_is_missing_and_whose_it_is(
    open_players: Any, name: str, where: str
) -> None:
    error = caught(name)
    assert isinstance(error, DeadlockError)
    assert error.root is not None
    page = open_players(viz.fault(error), viewport={"width": 1280, "height": 900})
    shown = " ".join(page.locator(".fp4ref-picture text").all_text_contents())
    assert "the load warp" in shown
    assert f"{where}:{error.root.statement.rpartition(':')[2]}." in shown
    numbers = [
        int(n.replace(",", "")) for n in re.findall(r"[\d,]+\d", error.root.what)
    ]
    if "credited" in error.root.what:
        missing = (
            f"{numbers[0] - numbers[1]:,} bytes fewer came to {error.root.barrier}"
        )
        assert missing in shown
    # Warps of one role that wait for the same thing are one box.
    waiting = {edge[1] for edge in error.edges if re.search(r"warp[4-7] at", edge[0])}
    assert shown.count("Epilogue warp") == len(waiting)
    boxes = shown.partition("Who waits for whom")[2]
    assert boxes
    assert not re.search(r"\bwarp\d", boxes)
    page.get_by_role("button", name="Go to the step where it went wrong").click()
    assert page.locator(".fp4ref-player").get_attribute("data-step") == str(
        error.root.step
    )


def test_a_race_shows_its_bytes_and_both_accesses(open_players: Any) -> None:
    error = caught("group-never-committed")
    assert isinstance(error, RaceFault)
    race = error.races[0]
    page = open_players(viz.fault(error), viewport={"width": 1280, "height": 900})
    shown = " ".join(page.locator(".fp4ref-picture text").all_text_contents())
    assert f"{race.runs[0][1]} bytes" in shown
    assert page.locator(".fp4ref-picture .f-illegal").count() == 1
    for side in (race.first, race.second):
        assert side.source in shown
        button = page.get_by_role("button", name=f"Step {side.step}: {side.verb}")
        button.click()
        step = page.locator(".fp4ref-player").get_attribute("data-step")
        assert step == str(side.step)


def test_a_read_before_the_write_shows_that_nobody_wrote(open_players: Any) -> None:
    error = caught("peer-bytes-forgotten")
    page = open_players(viz.fault(error), viewport={"width": 1280, "height": 900})
    shown = " ".join(page.locator(".fp4ref-picture text").all_text_contents())
    assert "No event has written these bytes." in shown
    assert error.what in shown


def test_lanes_of_another_quarter_are_drawn(open_players: Any) -> None:
    error = caught("wrong-lane-quarter")
    page = open_players(viz.fault(error), viewport={"width": 1280, "height": 900})
    own, touched = (
        page.locator(f".fp4ref-picture rect.{name}").bounding_box()
        for name in ("f-lit", "f-illegal")
    )
    lanes = [
        int(n) for n in re.findall(r"lanes (\d+) to", f"{error.rule} {error.what}")
    ]
    quarters = (touched["y"] - own["y"]) / own["height"]
    assert round(quarters) == (lanes[1] - lanes[0]) / 32


@pytest.mark.rotating(1)
@pytest.mark.parametrize(
    "name", ["expect-too-many", "group-never-committed", "wrong-lane-quarter"]
)
def test_no_word_of_a_fault_meets_another(open_players: Any, name: str) -> None:
    player = viz.fault(caught(name))
    for width in (1280, 688, 390):
        page = open_players(player, viewport={"width": width, "height": 900})
        words = page.evaluate(WORDS)
        assert words_that_meet(words) == [], width
        assert [w["words"] for w in words if w["beyond"] > 1] == [], width
        assert min(w["size"] for w in words) >= 12, width
