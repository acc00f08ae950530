"""The built site, read as files: links, frames, words, and nothing from outside."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from book_site import ROOT
from html_pages import pages_of, paths_of, read

from fp4ref.frames import FRAMES, Verdict
from fp4ref.lessons.outline import LESSONS

pytestmark = pytest.mark.xdist_group("book")

LOCAL_PATHS = r"(?:^|[\s\"'(=])/(?:root|home|tmp|work|Users|usr|opt|var|etc|mnt|nix)/\S"
NOT_OURS = (
    r"\b(?:sessions?|helpers?|contract|site-packages|pypi\.org|files\.pythonhosted"
)
NOT_OURS += r"|registry\.npmjs|localhost|127\.0\.0\.1)\b"


def test_b43_nothing_is_fetched_from_outside(site: Path) -> None:
    for page in pages_of(site):
        outside = [url for url in page.fetched if urlsplit(url).netloc]
        assert not outside, f"{page.path.name} fetches {outside}"


def test_no_script_names_a_cdn(site: Path) -> None:
    for path in paths_of(site):
        scripts = re.findall(r"<script\b([^>]*)>(.*?)</script>", path.read_text(), re.S)
        for kind, text in scripts:
            if "text/plain" in kind:  # a packet in base64 may spell anything
                continue
            assert not re.search(r"\bcdn\b|cdnjs|jsdelivr|unpkg", text), path.name


def test_b42_no_widget_is_lost(site: Path) -> None:
    for path in paths_of(site):
        text = path.read_text("utf-8")
        assert "application/vnd.jupyter.widget" not in text, path.name
        assert "A Jupyter Widget" not in text, path.name


def test_every_link_inside_resolves(site: Path) -> None:
    broken = []
    for page in pages_of(site):
        for link in [*page.links, *page.fetched]:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = page.path
            if parts.path:
                target = (page.path.parent / unquote(parts.path)).resolve()
            if not target.is_file():
                broken.append(f"{page.path.name}: {link}")
            elif target.suffix == ".html":
                places = read(target).anchors | {""}
                if unquote(parts.fragment) not in places:
                    broken.append(f"{page.path.name}: {link} has no such place")
    assert not broken, "\n".join(broken[:20])


@pytest.mark.parametrize("id", FRAMES)
def test_a_frame_and_its_notebook_link_to_each_other(site: Path, id: str) -> None:
    anchor = f"frame-{re.sub('[. ]', '-', id)}"
    index = read(site / "frames.html")
    assert anchor in index.anchors
    section = section_of(site / "frames.html", anchor)
    name = FRAMES[id].notebook
    assert f'href="notebooks/{name}.html"' in section
    assert f"../frames.html#{anchor}" in read(site / f"notebooks/{name}.html").links


def section_of(path: Path, anchor: str) -> str:
    """HTML from the place with an anchor up to the next section."""
    text = path.read_text("utf-8")
    start = text.index(f'id="{anchor}"')
    return text[start : text.find("<section", start)]


def test_an_entry_says_what_the_package_says(site: Path) -> None:
    text = plain(read(site / "frames.html").text)
    for frame in FRAMES.values():
        for words in (frame.claim, frame.truth, frame.source, frame.emulator):
            assert plain(words) in text, f"{frame.id}: {words[:50]}"


def plain(text: str) -> str:
    """Spaces and quotes as one kind; the site prints them as typographers do."""
    quotes = str.maketrans("‘’“”–—", "''\"\"--")
    text = " ".join(text.split()).translate(quotes)
    return text.replace("--", "-").replace("...", "…")


def test_every_exercise_of_a_frame_is_linked(site: Path) -> None:
    from fp4ref.lessons.exercise import every

    links = read(site / "frames.html").text
    for exercise in every().values():
        if any(id in FRAMES for id in exercise.frames):
            assert exercise.id in links


def test_a_wrong_frame_and_its_errata_link_to_each_other(site: Path) -> None:
    errata = read(site / "notebooks/10_errata.html")
    for id, frame in FRAMES.items():
        if frame.verdict is Verdict.WRONG:
            anchor = f"frame-{re.sub('[. ]', '-', id)}"
            section = section_of(site / "frames.html", anchor)
            (first, *_) = re.findall(
                r'href="notebooks/10_errata.html#([^"]+)"', section
            )
            assert first in errata.anchors
            assert f"../frames.html#{anchor}" in errata.links


def test_the_road_names_every_notebook_with_its_minutes(site: Path) -> None:
    text = " ".join(read(site / "index.html").text.split())
    for lesson in LESSONS.values():
        assert f"{lesson.number}. {lesson.title} {lesson.minutes} minutes" in text


def test_the_site_speaks_of_the_product_only(site: Path) -> None:
    for page in pages_of(site):
        for pattern in (LOCAL_PATHS, NOT_OURS):
            found = re.search(pattern, page.text)
            where = (
                page.text[max(found.start() - 60, 0) : found.end() + 60]
                if found
                else ""
            )
            assert not found, f"{page.path.name}: {where!r}"
        assert str(ROOT) not in page.path.read_text("utf-8"), page.path.name


def test_pages_are_small(site: Path) -> None:
    for path in paths_of(site):
        assert path.stat().st_size < 3_000_000, path.name


def test_every_picture_has_words(site: Path) -> None:
    for path in paths_of(site):
        for image in re.findall(r"<img\b[^>]*>", path.read_text("utf-8")):
            words = re.search(r'alt="([^"]*)"', image)
            assert words, f"{path.name}: {image[:200]}"
            assert len(words[1]) > 20, f"{path.name}: {image[:200]}"
