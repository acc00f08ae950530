"""Long pages fold and are filtered; a listing is copied without its numbers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import code_page
import frame_page
import notebook_pages
import pytest
import wording
from book_site import ROOT
from browser import local_page

STATIC = ROOT / "book" / "static"
ENTRIES = {"one": "the first tile", "two": "the last Tile", "three": "a barrier"}
LISTING = (
    '<span class="linenos">7</span>def f():\n<span class="linenos">8</span>    pass\n'
)


def page_of(folder: Path) -> Path:
    """A page as the theme writes one, with our script and our sheet."""
    entries = "".join(
        f'<section id="e-{name}"><span id="{name}"></span><h3>{name}</h3><p>{text}</p>'
        f"</section>"
        for name, text in ENTRIES.items()
    )
    marker = wording.FILTER.splitlines()[1]
    page = folder / "page.html"
    page.write_text(
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>A</title>'
        f"<style>{(STATIC / 'book.css').read_text()}</style>"
        f"<script>{(STATIC / 'book.js').read_text()}</script></head>"
        f'<body><article class="bd-article">{marker}<section id="part"><h2>Part</h2>'
        f'{entries}</section><div class="highlight"><pre>{LISTING}</pre></div>'
        "</article></body></html>"
    )
    return page


@pytest.fixture
def opened(chromium: Any, tmp_path: Path) -> Iterator[Any]:
    with local_page(chromium, viewport={"width": 390, "height": 844}) as page:
        page.goto(page_of(tmp_path).as_uri())
        yield page


def unfolded(page: Any) -> list[str]:
    """Headings of the entries whose text is seen."""
    found: list[str] = page.locator("section:has(> .fp4-fold)").evaluate_all(
        "all => all.filter((each) => each.querySelector('p').checkVisibility())"
        ".map((each) => each.querySelector('h3').textContent)"
    )
    return found


def listed(page: Any) -> list[str]:
    found: list[str] = page.locator("h3:visible").all_inner_texts()
    return found


def test_entries_fold_by_keyboard(opened: Any) -> None:
    assert listed(opened) == list(ENTRIES)
    assert unfolded(opened) == []
    opened.locator("summary").nth(1).press("Enter")
    assert unfolded(opened) == ["two"]
    opened.get_by_role("button", name="Open all").press("Enter")
    assert unfolded(opened) == list(ENTRIES)
    opened.get_by_role("button", name="Close all").click()
    assert unfolded(opened) == []


def test_the_field_leaves_entries_with_every_word(opened: Any) -> None:
    field = opened.get_by_label("Entries with these words")
    field.fill("TILE")
    assert listed(opened) == ["one", "two"]
    assert opened.locator("output").inner_text() == "2 of 3"
    field.fill("tile last")
    assert listed(opened) == unfolded(opened) == ["two"]
    field.fill("nothing has this")
    assert listed(opened) == []
    assert not opened.get_by_text("Part").is_visible()
    field.fill("")
    assert listed(opened) == list(ENTRIES)


def test_an_address_opens_its_entry_even_if_it_is_filtered(opened: Any) -> None:
    opened.get_by_label("Entries with these words").fill("tile")
    opened.evaluate("location.hash = 'three'")
    opened.wait_for_function("document.querySelector('#e-three details').open")
    assert "three" in unfolded(opened)


def test_a_listing_is_copied_without_the_numbers(opened: Any) -> None:
    opened.evaluate(
        "Object.defineProperty(navigator, 'clipboard', {value: {writeText: (text) => "
        "{ window.heard = text; return Promise.resolve(); }}})"
    )
    button = opened.get_by_role("button", name="Copy")
    button.press("Enter")
    opened.get_by_role("button", name="Copied").wait_for()
    assert opened.evaluate("window.heard") == "def f():\n    pass\n"


def test_without_scripts_everything_is_open(chromium: Any, tmp_path: Path) -> None:
    with local_page(chromium, java_script_enabled=False) as page:
        page.goto(page_of(tmp_path).as_uri())
        assert page.locator(".bd-article p:visible").count() == len(ENTRIES)


def test_the_three_long_pages_ask_for_it() -> None:
    errata = notebook_pages.pages()["notebooks/10_errata.ipynb"]
    assert errata.count("data-filter") == 1
    assert errata.index("data-filter") < errata.index("(errata-1-1)=")
    for text in (frame_page.page(), code_page.page()):
        assert text.count(wording.FILTER) == 1
        assert text.index(wording.FILTER) < text.index("\n### ")
