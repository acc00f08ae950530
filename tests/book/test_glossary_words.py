"""The first use of a word on a page opens its meaning, by keyboard and by touch."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import glossary
import pytest
from book_site import ROOT
from browser import local_page

STATIC = ROOT / "book" / "static"
TEXT = (
    "<h2>TMEM</h2><p>A TMEM has lanes; TMEM again. Two mbarriers and a k-tile, "
    "<code>CTA</code>, TMEM_WORD.</p><p>A deadlock.</p>"
)


@pytest.fixture(params=[False, True], ids=["mouse", "touch"])
def opened(request: Any, chromium: Any, tmp_path: Path) -> Iterator[Any]:
    page_file = tmp_path / "notebooks" / "page.html"
    page_file.parent.mkdir()
    page_file.write_text(
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>A</title>'
        f"<style>{(STATIC / 'book.css').read_text()}</style>"
        f"<script>{glossary.script()}{(STATIC / 'book.js').read_text()}</script>"
        f'</head><body><article class="bd-article">{TEXT}</article></body></html>'
    )
    size = {"width": 390, "height": 844}
    with local_page(chromium, viewport=size, has_touch=request.param) as page:
        page.goto(page_file.as_uri())
        page.touches = request.param
        yield page


def test_only_the_first_use_in_prose_is_a_button(opened: Any) -> None:
    words = opened.locator(".fp4-word").all_inner_texts()
    assert words == ["TMEM", "mbarriers", "k-tile", "deadlock"]
    shown = opened.locator("article").inner_text()
    assert "A TMEM has lanes; TMEM again. Two mbarriers" in shown


def test_it_opens_and_closes_the_meaning(opened: Any) -> None:
    button = opened.get_by_role("button", name="deadlock")
    meaning = opened.locator(".fp4-meaning:visible")
    assert meaning.count() == 0
    if opened.touches:
        button.tap()
    else:
        button.press("Enter")
    meaning.wait_for()
    assert "none of them can send any more" in meaning.inner_text()
    box = meaning.bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 390
    link = meaning.get_by_role("link").get_attribute("href")
    assert link == "../glossary.html#word-deadlock"
    opened.keyboard.press("Escape")
    meaning.wait_for(state="hidden")


def test_each_word_of_the_script_has_its_place_in_the_glossary() -> None:
    text = glossary.script().removeprefix("const GLOSSARY = ").removesuffix(";\n")
    words = json.loads(text)
    page = glossary.page()
    areas = tomllib.loads(glossary.SOURCE.read_text("utf-8"))["area"]
    means = {word["means"] for area in areas for word in area["word"]}
    assert len(words) > 50
    for meaning, anchor in words.values():
        assert f"({anchor})=" in page
        assert meaning in means
