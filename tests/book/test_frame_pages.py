"""A frame's page shows a run at an event of the frame, and both texts."""

from __future__ import annotations

import base64
import re
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from browser import local_page
from html_pages import read

from fp4ref.cuda_kernel.twins import twin
from fp4ref.frames import FRAMES, Frame, FrameKind
from fp4ref.lessons.show import cuda_excerpt, python_excerpt
from fp4ref.viz.packet import unpack

pytestmark = pytest.mark.xdist_group("book")


def file_of(site: Path, frame: Frame) -> Path:
    return site / "frame" / f"{re.sub('[. ]', '-', frame.id)}.html"


@cache
def header(path: Path) -> dict[str, Any]:
    """Header of the packet that a player's page holds."""
    (data,) = re.findall(r'-packet">([^<]+)<', path.read_text("utf-8"))
    return unpack(base64.b64decode(data))[0]


def test_each_page_is_at_an_event_of_its_frame(site: Path) -> None:
    """The step in the page's words, its window and the packet are the same."""
    for frame in FRAMES.values():
        path = file_of(site, frame)
        (address,) = re.findall(r'<iframe [^>]*src="([^"]+)"', path.read_text("utf-8"))
        parts = urlsplit(address.replace("&amp;", "&"))
        packet = header(path.with_name(parts.path))
        columns, tables = packet["columns"], packet["tables"]
        step = int(parse_qs(parts.query)["step"][0])
        text = " ".join(read(path).text.split())
        assert f"Step {step:,} of {len(columns['kind']) - 1:,}." in text
        if frame.kind is FrameKind.EVENT or frame.asks:
            assert frame.id in tables["frames"][columns["frames"][step]], frame.id
            words = tables["words"][columns["words"][step]]
            assert words.replace("`", "") in text


def test_each_page_has_both_texts_and_its_words_of_ptx(site: Path) -> None:
    for frame in FRAMES.values():
        text = read(file_of(site, frame)).text
        assert python_excerpt(frame.emulator).text in text, frame.id
        if twin(frame.emulator):
            assert cuda_excerpt(frame.emulator).text in text, frame.id
        assert all(name in text for name in frame.operations)
        assert file_of(site, frame).stat().st_size < 40_000


def test_the_way_through_all_frames(site: Path) -> None:
    """From the first by the links to the next, then back."""
    in_order = [file_of(site, frame) for frame in FRAMES.values()]
    for rel, way in (("next", in_order), ("prev", in_order[::-1])):
        at = way[0]
        for there in way[1:]:
            pattern = rf'<a rel="{rel}" href="([^"]+)"'
            found = set(re.findall(pattern, at.read_text("utf-8")))
            assert [(at.parent / each).resolve() for each in found] == [there.resolve()]
            at = there


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_index_leads_to_a_player_at_the_step(
    chromium: Any, site: Path, theme: str
) -> None:
    size = {"width": 390, "height": 844}
    with local_page(chromium, viewport=size, color_scheme=theme) as page:
        page.goto((site / "frames.html").as_uri() + "#frame-6-6-4")
        page.locator("#frame-6-6-4 ~ details a, #frame-6-6-4 a").get_by_text(
            "A page of its own"
        ).first.click()
        window = page.frame_locator("iframe")
        player = window.locator(".fp4ref-player")
        player.locator(".fp4ref-picture svg").first.wait_for()
        step = page.locator("iframe").get_attribute("title").split()[-1]
        assert player.get_attribute("data-step") == step
        assert page.evaluate("scrollY") == 0
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        axe = pytest.importorskip(
            "axe_playwright_python.sync_playwright", reason="axe is in the extra 'dev'"
        ).Axe()
        found = axe.run(page, options={"resultTypes": ["violations"]})
        serious = [
            (v["id"], v["nodes"][0]["html"][:200])
            for v in found.response["violations"]
            if v["impact"] in ("serious", "critical")
        ]
        assert not serious
