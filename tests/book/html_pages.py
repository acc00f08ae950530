"""html_pages: what a built page holds, read without a browser."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

FETCHING = {
    ("script", "src"),
    ("img", "src"),
    ("source", "src"),
    ("iframe", "src"),
    ("link", "href"),
}
"""Attributes that a browser follows by itself."""

NOT_FETCHED = ("index", "search", "next", "prev")

VOID = {"area", "base", "br", "col", "hr", "img", "input", "link", "meta", "source"}


@dataclass
class Page:
    """One page: its anchors, links, what it fetches, and the text of its article."""

    path: Path
    anchors: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    fetched: list[str] = field(default_factory=list)
    text: str = ""


class _Reader(HTMLParser):
    def __init__(self, page: Page) -> None:
        super().__init__()
        self.page, self.article, self.silent = page, 0, 0

    def handle_starttag(
        self, tag: str, attributes: list[tuple[str, str | None]]
    ) -> None:
        values = {name: value or "" for name, value in attributes}
        if "id" in values:
            self.page.anchors.add(values["id"])
        for name in ("href", "src"):
            followed = (tag, name) in FETCHING and values.get("rel") not in NOT_FETCHED
            if followed and name in values:
                self.page.fetched.append(values[name])
        if tag == "a" and "href" in values:
            self.page.links.append(values["href"])
        if tag in ("script", "style"):
            self.silent += 1
        if tag not in VOID and (self.article or tag == "article"):
            self.article += 1

    def handle_endtag(self, tag: str) -> None:
        if tag in ("script", "style"):
            self.silent -= 1
        if self.article and tag not in VOID:
            self.article -= 1

    def handle_data(self, data: str) -> None:
        if self.article and not self.silent:
            self.page.text += data


@cache
def read(path: Path) -> Page:
    """Read one page."""
    page = Page(path)
    reader = _Reader(page)
    reader.feed(path.read_text("utf-8"))
    reader.close()
    return page


def paths_of(site: Path) -> list[Path]:
    """Path of every page, without the theme's own files."""
    return sorted([*site.glob("*.html"), *site.glob("notebooks/*.html")])


def pages_of(site: Path) -> list[Page]:
    """Every page of the site, and those of frames, which have no theme."""
    return [read(path) for path in [*paths_of(site), *sorted(site.glob("frame/*"))]]
