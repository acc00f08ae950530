"""The player on the built site: by keyboard alone, and by link."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from browser import local_page

pytestmark = pytest.mark.xdist_group("book")

PAGE = "notebooks/00_start_here.html"
IN_PLAYER = "document.activeElement?.closest('.fp4ref-player') !== null"


def test_keyboard_alone_steps_plays_and_rewinds(chromium: Any, site: Path) -> None:
    with local_page(chromium) as page:
        page.goto((site / PAGE).as_uri())
        player = page.locator(".fp4ref-player").first
        player.locator(".fp4ref-picture svg").wait_for()
        for _ in range(300):
            page.keyboard.press("Tab")
            if page.evaluate(IN_PLAYER):
                break
        assert page.evaluate(IN_PLAYER), "Tab never reaches the player"
        start = int(player.get_attribute("data-step"))
        for _ in range(5):
            page.keyboard.press("ArrowRight")
        assert player.get_attribute("data-step") == str(start + 5)
        page.keyboard.press("Space")
        page.wait_for_function(
            "(at) => +document.querySelector('.fp4ref-player').dataset.step > at",
            arg=start + 6,
        )
        page.keyboard.press("Space")
        page.keyboard.press("Home")
        assert player.get_attribute("data-step") == "0"
        page.keyboard.press("5")
        assert player.get_attribute("data-view") == "tmem"


def test_a_link_opens_a_view_at_a_step(chromium: Any, site: Path) -> None:
    with local_page(chromium) as page:
        page.goto((site / PAGE).as_uri() + "?view=barriers&step=37")
        player = page.locator(".fp4ref-player").first
        player.locator(".fp4ref-picture svg").wait_for()
        assert player.get_attribute("data-step") == "37"
        assert player.get_attribute("data-view") == "barriers"


def test_the_default_walk_is_one_click_away(chromium: Any, site: Path) -> None:
    """All its events and all its bytes, in less than 3 MB."""
    assert (site / "walk.html").stat().st_size < 3_000_000
    with local_page(chromium) as page:
        page.goto((site / "index.html").as_uri())
        page.get_by_role("link", name="Play the default walk").click()
        player = page.locator(".fp4ref-player")
        player.locator(".fp4ref-picture svg").wait_for()
        player.press("End")
        machine = "document.querySelector('.fp4ref-player').fp4ref.machine"
        wrong, computed, events = page.evaluate(
            f"[{machine}.wrong.length, {machine}.results.size, {machine}.length]"
        )
        assert (wrong, computed) == (0, 6 * 24)
        assert events > 3000
        page.get_by_role("link", name="Back to the book").click()
        assert page.url.endswith("index.html")


def test_the_home_page_moves_within_one_click(chromium: Any, site: Path) -> None:
    """From the click to the first MMA in flight, and nothing comes from elsewhere."""
    assert (site / "index.html").stat().st_size < 1_500_000
    with local_page(chromium) as page:
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.goto((site / "index.html").as_uri())
        player = page.locator(".fp4ref-player").first
        player.locator(".fp4ref-picture svg").wait_for()
        at = player.get_attribute("data-step") or ""
        machine = "document.querySelector('.fp4ref-player').fp4ref.machine"
        kinds = page.evaluate(f"{machine}.header.milestones")
        first = min(int(step) for step, kind in kinds.items() if kind == "first")
        assert int(at) < first
        page.get_by_role("button", name="Play the kernel").click()
        page.wait_for_function(f"{machine}.step >= {first}")
        assert all(url.startswith(("file:", "data:")) for url in asked)
        page.get_by_role("link", name="Start with notebook 00").click()
        assert page.url.endswith("00_start_here.html")


def test_the_microscope_is_one_click_away(chromium: Any, site: Path) -> None:
    with local_page(chromium) as page:
        page.goto((site / "quantisers.html").as_uri())
        page.get_by_role("link", name="One block through every recipe").click()
        player = page.locator(".fp4ref-player")
        player.locator(".fp4ref-picture svg").wait_for()
        assert player.get_attribute("data-view") == "recipes"
        player.locator(".fp4ref-twin summary").click()
        groups = player.locator(".fp4ref-twin tbody td:nth-child(2)").all_inner_texts()
        assert len(set(groups)) >= 8, "the block is chosen because recipes part in it"
        page.get_by_role("link", name="Back to recipes").click()
        assert page.url.endswith("quantisers.html")


@pytest.mark.rotating(1)
@pytest.mark.parametrize("view", ["fault", "barriers", "tmem", "timeline"])
def test_the_theme_does_not_reach_into_a_picture(
    chromium: Any, site: Path, view: str
) -> None:
    """Themes have rules for classes such as "card"; a rect with one would vanish."""
    with local_page(chromium) as page:
        page.goto((site / "notebooks/04_mbarriers_and_pipelines.html").as_uri())
        page.locator(".fp4ref-player [data-view=fault]").first.wait_for()
        player = page.locator(".fp4ref-player:has([data-view=fault])").first
        player.locator(f"[data-view={view}]").first.click()
        shapes = player.locator(".fp4ref-picture svg").locator("rect, text, line")
        found = shapes.evaluate_all(
            "(all) => all.map((e) => [getComputedStyle(e).display, e.outerHTML])"
        )
        assert len(found) > 20
        assert [each for each in found if each[0] not in ("inline", "block")] == []
        for name in ("position", "padding"):
            plain = {"static", "0px"}
            styles = shapes.evaluate_all(
                f"(all) => all.map((e) => getComputedStyle(e).{name})"
            )
            assert set(styles) <= plain
