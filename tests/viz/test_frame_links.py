"""The frame of an event is a link to the frame index, where there is one beside it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from browser import local_page

import fp4ref
from fp4ref import viz
from fp4ref.frames import FRAMES

INDEX = "../frames.html"


def links(chromium: Any, path: Path) -> list[list[str]]:
    """Links of the first player's event that stay in the book: address and words."""
    with local_page(chromium) as page:
        page.goto(path.as_uri())
        page.locator(".fp4ref-picture svg").wait_for()
        found = page.locator(".fp4ref-event a").evaluate_all(
            "all => all.map((a) => [a.getAttribute('href'), a.textContent])"
        )
    return [each for each in found if not each[0].startswith("https:")]


def opened_at(run: fp4ref.Run, id: str) -> viz.Player:
    assert run.trace is not None
    step = next(e.step for e in run.trace if e.frames and e.frames[-1] == id)
    return viz.play(run, step=step, view="barriers")


def test_it_leads_to_the_frame(
    chromium: Any, small: fp4ref.Run, tmp_path: Path
) -> None:
    id = "6.6.4"
    path = tmp_path / "page.html"
    path.write_text(opened_at(small, id).page(frames=INDEX), "utf-8")
    (found,) = links(chromium, path)
    assert found == [f"{INDEX}#frame-6-6-4", f"frame {id} {FRAMES[id].title}"]


def test_it_is_none_without_an_index(
    chromium: Any, small: fp4ref.Run, tmp_path: Path
) -> None:
    path = tmp_path / "page.html"
    path.write_text(opened_at(small, "6.6.4").page(), "utf-8")
    assert links(chromium, path) == []


def test_the_book_says_where_the_index_is(
    small: fp4ref.Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    show: Callable[[], str] = viz.play(small).static_html
    assert f'frames: "{INDEX}"' not in show()
    monkeypatch.setenv("FP4REF_FRAMES", INDEX)
    assert f'frames: "{INDEX}"' in show()
