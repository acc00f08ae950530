"""Every declared exercise: the truth passes, the blank and each wrong answer fail."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fp4ref.errors import InputError
from fp4ref.frames import FRAMES
from fp4ref.lessons import transport
from fp4ref.lessons.exercise import Exercise, every, exercise, find, ids, of_lesson
from fp4ref.lessons.outline import LESSONS
from fp4ref.lessons.verdict import BLANK, Result, judge

EXERCISES = every()
WRONG = [
    pytest.param(each, answer, id=f"{each.id}-{number}")
    for each in EXERCISES.values()
    for number, answer in enumerate(each.wrong)
]


def through_the_grader(id: str, answer: Any) -> Result:
    """Judge an answer that has left a kernel as JSON."""
    return judge(
        id, transport.unpack(json.loads(json.dumps(transport.pack(id, answer))))
    )


@pytest.fixture(params=EXERCISES.values(), ids=EXERCISES)
def each(request: pytest.FixtureRequest) -> Exercise:
    return request.param


def test_there_are_exercises() -> None:
    numbers = {id.partition(".")[0] for id in EXERCISES}
    assert numbers <= {lesson.number for lesson in LESSONS.values()}
    assert list(of_lesson("01")) == [id for id in EXERCISES if id.startswith("01.")]


def test_the_truth_passes(each: Exercise) -> None:
    result = judge(each.id, each.truth)
    assert result, result
    assert through_the_grader(each.id, each.truth)


def test_the_blank_fails(each: Exercise) -> None:
    for blank in (..., None):
        result = judge(each.id, blank)
        assert not result
        assert result.message == BLANK


def test_a_function_without_a_body_is_not_an_answer(each: Exercise) -> None:
    if each.cases:
        assert judge(each.id, lambda *arguments: ...).message == BLANK
        nothing = judge(each.id, lambda *arguments: None)
        assert not nothing
        assert nothing.message.endswith("returns nothing.")
    else:
        assert not judge(each.id, lambda *arguments: ...)


@pytest.mark.parametrize("answer", ["", b"", [], {}, set(), object(), int, print, 1j])
def test_odd_answers_fail_in_a_sentence(each: Exercise, answer: object) -> None:
    result = judge(each.id, answer)
    assert not result
    assert 0 < len(result.message) < 400
    assert "\n" not in result.message
    assert "failed" not in result.message
    assert not through_the_grader(each.id, answer)


@pytest.mark.parametrize(("each", "answer"), WRONG)
def test_each_wrong_answer_fails(each: Exercise, answer: Any) -> None:
    result = judge(each.id, answer)
    assert not result
    assert len(result.message) < 600
    assert result.message != BLANK
    assert "check itself failed" not in result.message
    assert not through_the_grader(each.id, answer)


def test_hints_and_frames(each: Exercise) -> None:
    assert len(each.hints) >= 2
    assert len(set(each.hints)) == len(each.hints)
    assert set(each.frames) <= set(FRAMES)
    assert each.title


def test_a_right_answer_explains_and_names_the_next(each: Exercise) -> None:
    result = judge(each.id, each.truth)
    why, following = result.more
    assert why == f"Why: {each.because}"
    assert not each.because.endswith("?"), "an explanation asks nothing"
    order = list(EXERCISES)
    after = order[order.index(each.id) + 1 :]
    assert following.startswith(f"Next: {after[0]}" if after else "That was the last")


def test_the_ids_are_known_without_the_answers() -> None:
    assert ids() == tuple(EXERCISES)


def test_a_declaration_is_complete() -> None:
    for id, hints, wrong in (
        ("1.1", ("a", "b"), (1,)),
        ("97.1", ("a",), (1,)),
        ("97.1", ("a", "b"), ()),
    ):
        with pytest.raises(InputError):
            exercise(id, title="t", hints=hints, wrong=wrong)


def test_an_unknown_id_names_near_ones() -> None:
    with pytest.raises(InputError, match="near it: 01"):
        find("01.99")
    assert "no exercise" in judge("01.99", 1).message
    assert "no exercise" in judge("../x.1", 1).message


def test_a_huge_range_is_measured_and_not_listed() -> None:
    result = judge("03.3", range(10**12))
    assert not result
    assert "1000000000000 elements" in result.message.replace(",", "")
