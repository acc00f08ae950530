"""Riddles in notebook 11: what a cell shows, what it hides, and what is refused."""

from __future__ import annotations

import json
import re
from collections import Counter
from functools import cache
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from fp4ref import lessons
from fp4ref.errors import HardwareFault, InputError
from fp4ref.evidence.faults.riddles import RIDDLES
from fp4ref.lessons.exercise import of_lesson
from fp4ref.lessons.riddle_run import RiddleRun

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "14_riddles.ipynb"
NUMBERS = range(1, 1 + len(RIDDLES))


@cache
def asked(number: int) -> RiddleRun:
    return lessons.riddle(number)


@cache
def cells() -> dict[str, str]:
    notebook: Any = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    return {cell["id"]: "".join(cell["source"]) for cell in notebook["cells"]}


def words(html: str) -> str:
    """Text of HTML as a reader sees it."""
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", html)).split())


def without_answers(html: str) -> str:
    """HTML without what opens by a click."""
    return re.sub(r"(?s)</summary>.*?</details>", "</summary></details>", html)


@pytest.mark.parametrize("number", NUMBERS)
def test_a_riddle_shows_what_happens_and_hides_why(number: int) -> None:
    found = asked(number)
    mistake, riddle = found.mistake, found.riddle
    shown = words(without_answers(found._repr_html_()))
    text = " ".join(repr(found).split())
    for view in (shown, text):
        assert mistake.symptom in view
        assert riddle.question in view
        assert riddle.proof in view
        for belief in (riddle.right, *(each.belief for each in riddle.wrong)):
            assert belief in view
        for hidden in (mistake.name, mistake.title, mistake.cause, mistake.remedy):
            assert hidden not in view
        for each in riddle.wrong:
            assert each.because not in view
    for line in found.caught.report().splitlines():
        assert " ".join(line.split()) in shown


@pytest.mark.parametrize("number", NUMBERS)
def test_each_answer_says_what_it_is_worth(number: int) -> None:
    found = asked(number)
    right = [each.letter for each in found.choices if each.right]
    assert len(right) == 1
    html = words(found._repr_html_())
    for each in found.choices:
        said = repr(found.choose(each.letter))
        assert (
            said == f"({each.letter}) {'Yes' if each.right else 'No'}. {each.because}"
        )
        assert each.because in html
    wrong = {each.belief: each.because for each in found.riddle.wrong}
    known = {each.text: each.because for each in found.choices if not each.right}
    assert known == wrong


def test_no_letter_is_always_right() -> None:
    letters = Counter(
        each.letter for n in NUMBERS for each in asked(n).choices if each.right
    )
    assert max(letters.values()) <= len(RIDDLES) // 2
    assert set(letters) == {"a", "b", "c"}


@pytest.mark.parametrize("number", NUMBERS)
def test_answers_open_by_keyboard_and_without_scripts(number: int) -> None:
    html = asked(number)._repr_html_() + asked(number).mend()._repr_html_()
    assert html.count("<details") == html.count("<summary") == 4
    assert "<script" not in html
    assert "onclick" not in html
    assert not re.search(r"<details[^>]* open", html)


@pytest.mark.parametrize("number", NUMBERS)
def test_the_end_has_cause_remedy_line_and_twin(number: int) -> None:
    found = asked(number)
    page = found.mend()
    form = found.mistake.forms[found.form]
    for view in (words(page._repr_html_()), " ".join(repr(page).split())):
        for shown in (found.mistake.cause, found.mistake.remedy, form.change.line):
            assert shown in view
        assert "Clean twin: the run ends" in view.replace("twin the", "twin: the")
    assert found.clean.silent
    assert not found.caught.silent


@pytest.mark.parametrize("number", NUMBERS)
def test_a_riddle_has_its_fault_or_its_difference(number: int) -> None:
    found = asked(number)
    assert len(found.trace) > 0
    assert len(found.clean_trace) > 0
    if found.caught.difference is None:
        assert isinstance(found.fault, HardwareFault)
    else:
        with pytest.raises(InputError, match=r"refuses nothing.*\.caught\.difference"):
            _ = found.fault


@pytest.mark.parametrize("number", [0, 13, -1, 1.5, "one", None, True])
def test_no_other_riddle_is_a_sentence(number: Any) -> None:
    with pytest.raises(InputError, match=r"number: .*need a whole number"):
        lessons.riddle(number)


@pytest.mark.parametrize("letter", ["d", "", "A", None, 1])
def test_no_other_answer_is_a_sentence(letter: Any) -> None:
    with pytest.raises(InputError, match="choose from a, b, c"):
        asked(1).choose(letter)


def test_the_notebook_asks_all_of_them_in_order() -> None:
    found = re.findall(r"= lessons\.riddle\((\d+)\)", "\n".join(cells().values()))
    assert [int(number) for number in found] == list(NUMBERS)
    assert list(of_lesson("14")) == [f"14.{number}" for number in NUMBERS]
    for number in NUMBERS:
        assert f"riddle_{number}.mend()" in cells()[f"mend-{number}"]


@pytest.mark.parametrize("number", NUMBERS)
def test_a_check_is_titled_and_hinted_by_the_gallery(number: int) -> None:
    exercise = of_lesson("14")[f"14.{number}"]
    mistake = RIDDLES[number - 1].fault
    assert exercise.title == f"{mistake.title}."
    assert exercise.hints[-1] == mistake.evidence
    for text in (mistake.title, mistake.cause, mistake.remedy):
        assert text not in "\n".join(cells().values())
