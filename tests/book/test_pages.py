"""The built site in a real browser, opened from its files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from browser import local_page
from html_pages import paths_of

pytestmark = pytest.mark.xdist_group("book")

WIDE = {"width": 1280, "height": 900}
NARROW = {"width": 390, "height": 844}
THEMES = ("light", "dark")

AXE_PAGES = (
    *("frames", "faults", "glossary", "quantisers"),
    *("notebooks/04_mbarriers_and_pipelines", "notebooks/14_riddles"),
    "notebooks/11_your_checkpoint",
)


def address(site: Path, name: str) -> str:
    return (site / f"{name}.html").as_uri()


def names(site: Path) -> list[str]:
    paths = paths_of(site)
    return [str(path.relative_to(site).with_suffix("")) for path in paths]


@pytest.mark.rotating(1)
@pytest.mark.parametrize("part", range(6))
def test_no_page_asks_for_anything_outside(
    chromium: Any, site: Path, part: int
) -> None:
    with local_page(chromium, viewport=WIDE) as page:
        for name in names(site)[part::6]:
            page.goto(address(site, name), wait_until="load")


@pytest.mark.rotating(1)
@pytest.mark.parametrize("part", range(6))
def test_no_page_is_wider_than_a_phone(chromium: Any, site: Path, part: int) -> None:
    with local_page(chromium, viewport=NARROW) as page:
        for name in names(site)[part::6]:
            page.goto(address(site, name), wait_until="load")
            width = page.evaluate("document.documentElement.scrollWidth")
            assert width <= NARROW["width"], f"{name} is {width} pixels wide"


def test_no_word_breaks_in_a_table_of_numbers(chromium: Any, site: Path) -> None:
    with local_page(chromium, viewport=NARROW) as page:
        page.goto(address(site, "k_groups"), wait_until="load")
        wraps = page.locator(
            ".bd-article table:not(.stacked) :is(td, th) p"
        ).evaluate_all("all => all.map((one) => getComputedStyle(one).overflowWrap)")
        assert set(wraps) == {"normal"}


@pytest.mark.rotating(1)
@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("name", AXE_PAGES)
def test_axe_finds_nothing_serious(
    chromium: Any, site: Path, name: str, theme: str
) -> None:
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="axe is in the extra 'dev'"
    ).Axe()
    with local_page(chromium, viewport=WIDE, color_scheme=theme) as page:
        page.goto(address(site, name), wait_until="load")
        assert page.evaluate("document.documentElement.dataset.theme") == theme
        found = axe.run(page, options={"resultTypes": ["violations"]})
    serious = [
        f"{v['id']}: {v['help']}: {v['nodes'][0]['html'][:200]}"
        for v in found.response["violations"]
        if v["impact"] in ("serious", "critical")
    ]
    assert not serious, "\n".join(serious)


def test_the_search_works_from_a_file(chromium: Any, site: Path) -> None:
    with local_page(chromium, viewport=WIDE) as page:
        page.goto(address(site, "search") + "?q=utccp", wait_until="load")
        first = page.locator("#search-results li a").first
        first.wait_for()
        first.click()
        page.wait_for_url("**/glossary.html*")
        assert page.url.rpartition("#")[2]


def test_b42_with_scripts_off_a_player_is_text(chromium: Any, site: Path) -> None:
    players = [
        name
        for name in names(site)
        if "fp4ref-fallback" in (site / f"{name}.html").read_text("utf-8")
    ]
    assert len(players) >= 8
    with local_page(chromium, java_script_enabled=False) as page:
        for name in players:
            page.goto(address(site, name), wait_until="load")
            shown = page.locator(".fp4ref-fallback").first
            assert shown.is_visible(), name
            assert len(shown.inner_text()) > 200, name


def test_with_scripts_a_player_is_drawn(chromium: Any, site: Path) -> None:
    name = "notebooks/04_mbarriers_and_pipelines"
    with local_page(chromium, viewport=WIDE) as page:
        page.goto(address(site, name), wait_until="load")
        page.locator(".fp4ref-player").first.wait_for(timeout=20_000)
        assert page.locator(".fp4ref-fallback:visible").count() == 0
