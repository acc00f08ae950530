"""Exercises in the page: the words of the grader, by keyboard, and no answer told."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from enum import Enum
from html import escape
from pathlib import Path
from typing import Any

import answer_forms
import pytest
from book_site import ROOT
from browser import local_page

from fp4ref.lessons.answer import first_difference
from fp4ref.lessons.exercise import Exercise, every, ids
from fp4ref.lessons.outline import LESSONS
from fp4ref.lessons.verdict import judge

ASKED = {id: each for id, each in every().items() if each.cases is None}
STATIC = ROOT / "book" / "static"
PLAIN = (bool, int, float, str, type(None))


def typed(answer: Any, truth: Any) -> list[str] | None:
    """What a reader types into the fields for an answer; None if it cannot be."""
    if isinstance(truth, dict):
        if not isinstance(answer, dict) or set(answer) != set(truth):
            return None
        texts = [typed(answer[key], truth[key]) for key in truth]
        return None if None in texts else [each[0] for each in texts if each]
    if isinstance(answer, list | tuple | set):
        text = "{}" if answer == set() else repr(answer)  # set() is no literal
        return [text] if all(typed(e, 0) for e in answer) else None
    if not isinstance(answer, PLAIN):
        name = getattr(answer, "name", None)
        return None if name is None else [name]
    return [answer if isinstance(answer, str) else repr(answer)]


def matches(salt: str, part: dict[str, Any], value: Any) -> bool:
    """Whether an answer has the hashes of a form."""
    try:
        mine = answer_forms.hashes(salt, value, part["place"])
    except TypeError:
        return False
    names = ("kind", "hash", "parts")
    return [mine.get(name) for name in names] == [part.get(name) for name in names]


def of_all() -> list[dict[str, Any]]:
    """Every exercise of every page."""
    scripts = (answer_forms.script(f"notebooks/{name}") for name in LESSONS)
    pages = [json.loads(text) for text in scripts if text]
    assert all(page["ids"] == list(ids()) for page in pages)
    return [each for page in pages for each in page["exercises"]]


def test_two_thirds_of_all_and_every_riddle_are_answered_in_the_page() -> None:
    forms = {each["id"]: each for each in of_all()}
    assert list(forms) == list(ids())
    asked = [id for id, each in forms.items() if "truth" in each]
    assert asked == list(ASKED)
    assert len(asked) >= len(forms) * 2 / 3
    assert sum(id.startswith("14.") for id in asked) == 12


@pytest.mark.parametrize("id", ASKED)
def test_the_hashes_agree_with_the_grader(id: str) -> None:
    exercise = ASKED[id]
    truth = answer_forms.form(exercise)["truth"]
    assert matches(id, truth, exercise.truth)
    for wrong in exercise.wrong:
        right = first_difference(wrong, exercise.truth) is None
        assert matches(id, truth, wrong) == right == judge(id, wrong).passed


def test_no_answer_is_in_the_page() -> None:
    """Only hashes, and the same part of another exercise has another hash."""

    def hashes(part: dict[str, Any]) -> Iterator[str]:
        yield from part.get("hash", [])
        for each in part.get("parts", []):
            yield from hashes(each)

    seen: list[str] = []
    for each in of_all():
        assert set(each) <= {"id", "said", "unit", "next", "truth"}
        said = json.loads(base64.b64decode(each["said"]))
        assert said["hints"] == list(every()[each["id"]].hints)
        seen += hashes(each.get("truth", {}))
    assert all(re.fullmatch("[0-9a-f]{32}", each) for each in seen)
    assert len(set(seen)) == len(seen)


def test_the_contents_tick_what_has_passed(chromium: Any, tmp_path: Path) -> None:
    """The link of a notebook counts its exercises; all of them give a tick."""
    listed = json.loads(answer_forms.listed()[len("const EXERCISES = ") : -2])
    assert [id for found in listed.values() for id in found] == list(ASKED)
    chosen = [ASKED[id] for id in listed["00"]]
    forms = [each for each in of_all() if each["id"] in listed["00"]]
    address = page_of(tmp_path, forms)
    file = tmp_path / "page.html"
    ours = f"<script>{answer_forms.listed()}</script>"
    ours += f'<script src="{(STATIC / "progress.js").as_uri()}"></script>'
    bar = '<nav class="bd-sidebar-primary"><a href="#">00. Start here</a>'
    bar += '<a href="#">Glossary</a></nav>'
    text = file.read_text("utf-8").replace("<script src", f"{ours}<script src", 1)
    file.write_text(
        text.replace("<main>", f'{bar}<a href="#">Glossary</a></nav><main>')
    )
    with local_page(chromium) as page:
        page.goto(address)
        links = page.locator("nav a")
        assert links.all_inner_texts() == ["00. Start here", "Glossary"]
        for done, exercise in enumerate(chosen, 1):
            page.evaluate(SUBMIT, [exercise.id, typed(exercise.truth, exercise.truth)])
            note = "\u2713" if done == len(chosen) else f"{done}/{len(chosen)}"
            assert links.first.inner_text() == f"00. Start here {note}"
        page.reload()
        assert links.all_inner_texts() == ["00. Start here \u2713", "Glossary"]
        assert links.first.locator(".fp4-passed").get_attribute("aria-label") == (
            f"{len(chosen)} of {len(chosen)} exercises have passed"
        )


def test_other_pages_have_no_exercises() -> None:
    for name in ("index", "notebooks/10_errata", "notebooks/cell", "frames"):
        assert answer_forms.script(name) == ""


def page_of(folder: Path, exercises: list[dict[str, Any]]) -> str:
    """Write a page with some exercises as the site has them; return its address."""
    data = {"blank": "Nothing is answered yet.", "ids": ids(), "exercises": exercises}
    cells = "".join(
        '<div class="cell tag_exercise"><pre>'
        + escape(f'answer = ...\nlessons.check("{each["id"]}", answer)')
        + "</pre></div>"
        for each in exercises
    )
    text = json.dumps(data).replace("<", "\\u003c")
    file = folder / "page.html"
    file.write_text(
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>x</title>'
        f'<link rel="stylesheet" href="{(STATIC / "book.css").as_uri()}">'
        f'<script type="application/json" id="fp4-exercises">{text}</script>'
        f'<script src="{(STATIC / "exercises.js").as_uri()}"></script>'
        f"<main>{cells}</main></html>",
        "utf-8",
    )
    return file.as_uri()


SUBMIT = """([id, typed]) => {
  const form = document.getElementById("exercise-" + id.replace(".", "-"));
  form.querySelectorAll("input").forEach((input, i) => { input.value = typed[i]; });
  form.requestSubmit();
  return [...form.querySelectorAll("[role=status] p")].map((p) => p.textContent) }"""


def by_words(answer: Any) -> Any:
    """Give the answer with the name of a member of an Enum, which is all one types."""
    if isinstance(answer, dict):
        return {key: by_words(each) for key, each in answer.items()}
    return answer.name if isinstance(answer, Enum) else answer


def words(text: str) -> str:
    return text.replace("`", "")


def test_the_page_says_what_the_grader_says(chromium: Any, tmp_path: Path) -> None:
    tried = left_out = 0
    forms = of_all()
    with local_page(chromium) as page:
        page.goto(page_of(tmp_path, forms))
        for id, exercise in ASKED.items():
            right = page.evaluate(SUBMIT, [id, typed(exercise.truth, exercise.truth)])
            result = judge(id, exercise.truth)
            assert right == [words(f"{id} passed. {result.message}")] + [
                words(line) for line in result.more
            ]
            for wrong in exercise.wrong:
                fields = typed(wrong, exercise.truth)
                if fields is None:
                    left_out += 1
                    continue
                said = page.evaluate(SUBMIT, [id, fields])
                result = judge(id, by_words(wrong))
                assert said[0] == words(f"{id} not yet. {result.message}"), wrong
                assert said[1] == words(f"Hint: {exercise.hints[0]}")
                tried += 1
    assert tried > 9 * left_out


# The same by hand: what was typed, of which exercise, and what the grader gets.
TYPED: list[tuple[str, str, Any]] = [
    ("00.1", "", ...),
    ("00.1", "...", ...),
    ("00.1", "0x7", 7),
    ("00.1", "1,536 instructions", 1536),
    ("00.1", "2.5", 2.5),
    ("00.1", "1e20", 1e20),
    ("00.1", "0.00001", 1e-5),
    ("00.1", "many", "many"),
    ("00.1", "True", True),
    ("00.1", "1, 2", (1, 2)),
    ("00.2", "7", 7),
    ("00.2", "it's", "it's"),
    ("00.2", '"TMA"', "TMA"),
    ("00.2", "a" * 70, "a" * 70),
    ("01.4", "-0.0", -0.0),
    ("01.4", "97", 97),
    ("02.4", "[[128, 64], 1]", [[128, 64], 1]),
    ("02.4", "[[1, 64], 1, 4]", [[1, 64], 1, 4]),
    ("14.8", "clc.full[0], 3, 1", ("clc.full[0]", 3, 1)),
    ("14.10", "{0, 8}", {0, 8}),
    ("14.10", "3", 3),
    ("16.2", "0,", (0,)),
]


def test_what_is_typed_is_read_as_python_reads_it(
    chromium: Any, tmp_path: Path
) -> None:
    forms = [each for each in of_all() if each["id"] in {id for id, *_ in TYPED}]
    with local_page(chromium) as page:
        page.goto(page_of(tmp_path, forms))
        for id, text, answer in TYPED:
            said = page.evaluate(SUBMIT, [id, [text]])
            assert said[0] == words(f"{id} not yet. {judge(id, answer).message}"), text
        for odd in ("(1", "1 2", "]", "{", '"a', "2 * 3", ",", "[1,,2]"):
            said = page.evaluate(SUBMIT, ["16.2", [odd]])
            assert "This cannot be read" in said[0], odd


def press_to(page: Any, id: str) -> None:
    """Tab to the first field of an exercise."""
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate(
            "(id) => document.activeElement?.matches(`#${id} input`)", by_name(id)
        ):
            return
    raise AssertionError(f"Tab never reaches {id}")


def by_name(id: str) -> str:
    return f"exercise-{id.replace('.', '-')}"


def test_by_keyboard_wrong_then_right_then_still_there(
    chromium: Any, tmp_path: Path
) -> None:
    chosen = ("14.1", "14.2", "14.7", "01.2")
    forms = [each for each in of_all() if each["id"] in chosen]
    with local_page(chromium, viewport={"width": 390, "height": 844}) as page:
        address = page_of(tmp_path, forms)
        page.goto(address)
        for done, id in enumerate(("14.1", "14.2", "14.7")):
            exercise: Exercise = ASKED[id]
            form = page.locator(f"#{by_name(id)}")
            status = form.get_by_role("status")
            press_to(page, id)
            for text in typed(exercise.wrong[0], exercise.truth) or []:
                page.keyboard.type(text)
                page.keyboard.press("Tab")
            page.keyboard.press("Enter")  # on the button
            assert f"{id} not yet." in status.inner_text()
            page.keyboard.press("Tab")
            page.keyboard.press("Enter")
            assert words(exercise.hints[1]) in status.inner_text()
            form.locator("input").first.focus()
            for text in typed(exercise.truth, exercise.truth) or []:
                page.keyboard.press("Control+a")
                page.keyboard.type(text)
                page.keyboard.press("Tab")
            page.keyboard.press("Shift+Tab")
            page.keyboard.press("Enter")  # in a field
            said = status.inner_text()
            assert f"{id} passed." in said
            assert words(exercise.because) in said
            assert f"{done + 1} of {len(ids())} exercises" in form.inner_text()
        asked = page.locator(f"#{by_name('01.2')}")
        assert asked.locator("input").count() == 0
        assert "asks for a function" in asked.inner_text()
        wide = "document.documentElement.scrollWidth > innerWidth"
        assert not page.evaluate(wide)
        page.goto(address)
        assert "14.1 passed." in page.locator(f"#{by_name('14.1')}").inner_text()
        assert f"3 of {len(ids())}" in page.locator(f"#{by_name('14.7')}").inner_text()
