"""The built site asks its exercises: riddles by keyboard, solutions under a fold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from browser import local_page

from fp4ref.lessons.exercise import find, of_lesson

pytestmark = pytest.mark.xdist_group("book")


def test_the_riddles_are_answered_by_keyboard(chromium: Any, site: Path) -> None:
    file = site / "notebooks" / "14_riddles.html"
    assert "Nothing is answered yet." not in file.read_text("utf-8").replace(
        '"blank": "Nothing is answered yet."', ""
    )
    with local_page(chromium) as page:
        page.goto(file.as_uri())
        assert page.locator(".fp4-exercise").count() == len(of_lesson("14"))
        folds = page.locator(".tag_solution summary").all_inner_texts()
        assert {each.strip() for each in folds} == {"Solution"}
        form = page.locator("#exercise-14-2")
        status = form.get_by_role("status")
        form.locator("input").focus()
        page.keyboard.type(str(find("14.2").wrong[0]))
        page.keyboard.press("Enter")
        assert "14.2 not yet." in status.inner_text()
        page.keyboard.press("Control+a")
        page.keyboard.type(str(find("14.2").truth))
        page.keyboard.press("Enter")
        assert "14.2 passed." in status.inner_text()
        assert "Next: 14.3." in status.inner_text()
