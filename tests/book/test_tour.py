"""The tour: each stop is at the event that its paragraph tells of, and leads on."""

from __future__ import annotations

import base64
import re
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from browser import local_page
from html_pages import read

from fp4ref.viz.packet import unpack

pytestmark = pytest.mark.xdist_group("book")

EVENTS = (
    ("land", "cp.async.bulk.tensor.3d.load", ""),
    ("land", "cp.async.bulk.tensor.4d.load", "mainloop.full"),
    ("land", "tcgen05.cp", ""),
    ("land", "tcgen05.mma", ""),
    ("land", "tcgen05.commit", "mainloop.empty"),
    ("issue", "tcgen05.mma", ""),
    ("land", "tcgen05.commit", "accumulator.full"),
    ("land", "cp.async.bulk.tensor.3d.store", ""),
)
"""Kind and operation of each stop's event, and the barrier whose phase it flips."""


def stops(site: Path) -> list[dict[str, list[str]]]:
    """What the addresses of the stops ask for, in order."""
    links = [link for link in read(site / "tour.html").links if "stop=" in link]
    return [parse_qs(urlsplit(link).query) for link in links]


def test_each_stop_is_at_the_event_that_it_tells_of(site: Path) -> None:
    (data,) = re.findall(r'-packet">([^<]+)<', (site / "walk.html").read_text("utf-8"))
    header = unpack(base64.b64decode(data))[0]
    columns, tables = header["columns"], header["tables"]
    text = " ".join(read(site / "tour.html").text.split())
    steps = [int(each["step"][0]) for each in stops(site)]
    assert len(steps) == len(EVENTS) == 8
    assert steps == sorted(set(steps))
    for step, (kind, operation, ring) in zip(steps, EVENTS, strict=True):
        assert ("sync", "issue", "land", "note")[columns["kind"][step]] == kind
        assert tables["operation"][columns["operation"][step]] == operation
        assert tables["words"][columns["words"][step]] in text
        if ring:
            changed = [
                tables["barrier"][each[0]][2] for each in columns["barrier"][step]
            ]
            assert any(label.startswith(ring) for label in changed)
    assert columns["sm"][steps[0]] == 0


def test_where_loads_and_mmas_are_said_to_overlap_they_do(site: Path) -> None:
    (data,) = re.findall(r'-packet">([^<]+)<', (site / "walk.html").read_text("utf-8"))
    header = unpack(base64.b64decode(data))[0]
    columns, names = header["columns"], header["tables"]["operation"]
    at = int(stops(site)[5]["step"][0])
    flying = {
        names[columns["operation"][step]]
        for step in range(at + 1, len(columns["kind"]))
        if columns["sm"][step] == 0 and -1 < columns["issued"][step] < at
    }
    assert "tcgen05.mma" in flying
    assert any(name.endswith(".load") for name in flying)


@pytest.mark.parametrize("width", [390, 1280])
def test_the_tour_by_links_and_by_keys(chromium: Any, site: Path, width: int) -> None:
    with local_page(chromium, viewport={"width": width, "height": 844}) as page:
        page.goto((site / "tour.html").as_uri())
        page.locator("main a[href*='stop=1']").click()
        player = page.locator(".fp4ref-player")
        for number, asked in enumerate(stops(site), 1):
            player.locator(".fp4ref-picture svg").first.wait_for()
            assert player.get_attribute("data-step") == asked["step"][0]
            assert player.get_attribute("data-view") == asked["view"][0]
            shown = page.locator("[data-stop]:visible")
            assert shown.get_attribute("data-stop") == str(number)
            assert shown.bounding_box()["y"] >= 0, "the player hides it"
            assert not player.locator(".fp4ref-title").is_visible(), "said twice"
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            if number == 8 or (width == 390 and number == 2):
                break
            if number % 2:
                page.keyboard.press("n")
            else:
                shown.get_by_role("link", name="Next").click()
            page.wait_for_url(f"**stop={number + 1}")
        page.get_by_role("link", name="All stops").click()
        assert page.url.endswith("tour.html")
