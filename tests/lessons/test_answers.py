"""Answers: zero tolerance, the first difference in words, and never a traceback."""

from __future__ import annotations

import subprocess
import sys
from enum import Enum
from typing import Any, NoReturn

import ml_dtypes
import numpy as np
import pytest

from fp4ref import lessons
from fp4ref.errors import DeadlockError
from fp4ref.lessons import exercise as registry
from fp4ref.lessons import transport
from fp4ref.lessons.answer import first_difference, show
from fp4ref.lessons.verdict import BLANK


class Colour(Enum):
    RED = "red one"


NAN = float("nan")

RIGHT = [
    (3, 3),
    (np.int64(3), 3),
    (3.0, 3),
    (np.array([3]), 3),
    (True, True),
    (np.True_, True),
    (0.5, 0.5),
    (1, 1.0),
    (np.float32(0.5), 0.5),
    (0.5, np.float32(0.5)),
    (NAN, NAN),
    (0.1, np.float64(0.1)),
    (1.5, ml_dtypes.bfloat16(1.5)),
    (ml_dtypes.bfloat16(1.5), 1.5),
    (" TCGEN05.cp ", "tcgen05.cp"),
    ([1, 2], (1, 2)),
    (range(3), [0, 1, 2]),
    (np.arange(3), [0, 1, 2]),
    ([[1, 2], [3, 4]], np.array([[1, 2], [3, 4]], np.uint8)),
    ([0.5, -0.0], np.array([0.5, -0.0], np.float32)),
    ({"a": [1]}, {"a": (1,)}),
    ([2, 1, 1], {1, 2}),
    (bytearray(b"ab"), b"ab"),
    (Colour.RED, Colour.RED),
    ("red one", Colour.RED),
    (DeadlockError, DeadlockError),
    ("DeadlockError", DeadlockError),
]

WRONG = [
    (4, 3, "", "4"),
    (True, 1, "", "a whole number"),
    ("3", 3, "", "a whole number is asked for, not str"),
    (3 + 1e-9, 3, "", "3.0"),
    (1, True, "", "True or False"),
    (0.0, -0.0, "", "0.0"),
    (0.1, np.float32(0.1), "", "0.1"),
    (NAN, 1.0, "", "nan"),
    (1e300, np.float32(1), "", "1e+300"),
    (b"a", "a", "", "text in quotes"),
    ([1, 2], (1, 2, 3), "", "it has 2 elements, not 3"),
    ([1, [2, 3]], [1, [2, 4]], "[1][1]", "3"),
    ("abc", ["a", "b", "c"], "", "a list of 3 elements"),
    ([1, ...], [1, 2], "[1]", "nothing is answered here yet"),
    ([1, None], [1, 2], "[1]", "not nothing"),
    ({"a": 1}, {"a": 1, "b": 2}, "", "key 'b' is missing"),
    ({"a": 1, "c": 2}, {"a": 1}, "", "key 'c' does not belong there"),
    ({"a": 2}, {"a": 1}, "['a']", "2"),
    ([1], {"a": 1}, "", "a dict of 1 keys"),
    ({1, 3}, {1, 2}, "", "3 does not belong there"),
    ({1}, {1, 2}, "", "1 of 2 elements are missing"),
    ([[1, 2]], np.zeros((2, 2)), "", "its shape is (1, 2), not (2, 2)"),
    ([[0, 0], [0, 7]], np.zeros((2, 2), int), "[1, 1]", "7"),
    ([0.0], np.array([-0.0]), "[0]", "0.0"),
    ([[1], [2, 3]], np.zeros((2, 2)), "", "rows of one length"),
    ({}, np.zeros(2), "", "an array"),
    (["x"], np.zeros(1), "", "an array of numbers"),
    (b"ac", b"ab", "[1]", "99"),
    (Colour, Colour.RED, "", "Colour"),
    (ValueError, DeadlockError, "", "ValueError"),
]


@pytest.mark.parametrize(("answer", "truth"), RIGHT)
def test_right(answer: object, truth: object) -> None:
    assert first_difference(answer, truth) is None
    sent = transport.decode(transport.encode(answer))
    assert first_difference(sent, truth) is None


@pytest.mark.parametrize(("answer", "truth", "where", "what"), WRONG)
def test_wrong(answer: object, truth: object, where: str, what: str) -> None:
    difference = first_difference(answer, truth)
    assert difference is not None
    assert difference.where == where
    assert what in difference.what
    sent = transport.decode(transport.encode(answer))
    assert first_difference(sent, truth) is not None


def test_an_object_that_cannot_be_compared() -> None:
    class Odd(dict[str, int]):
        def __contains__(self, key: object) -> bool:
            raise RuntimeError("no")

    difference = first_difference(Odd(a=1), {"a": 1})
    assert difference is not None
    assert difference.what == "it cannot be compared (RuntimeError)"


def test_arrays_are_never_printed() -> None:
    assert show(np.zeros((128, 512), np.float32)) == "an array of 128 x 512 float32"
    assert len(show(list(range(10**5)))) < 80
    assert len(show("x" * 10**6)) < 80
    assert len(show(1 << 10**6)) < 80
    assert "0x" not in show(object())


@pytest.fixture
def _declared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_REGISTRY", {})

    @registry.exercise(
        "98.1", title="Bytes", hints=("first", "second"), wrong=(2,), unit="bytes"
    )
    def number() -> int:
        return 36864

    @registry.exercise("98.2", title="List", hints=("a", "b"), wrong=([],))
    def elements() -> list[int]:
        return [1, 2, 3]

    @registry.exercise(
        "98.3",
        title="Double",
        hints=("a", "b"),
        wrong=(lambda items: items,),
        cases=lambda: [([1],), ([2, 3],)],
    )
    def double(items: list[int]) -> list[int]:
        return [2 * item for item in items]

    @registry.exercise("98.4", title="Broken", hints=("a", "b"), wrong=(1,))
    def broken() -> NoReturn:
        raise ValueError("no such tile")


@pytest.mark.usefixtures("_declared")
class TestCheck:
    def test_passed(self) -> None:
        result = lessons.check("98.1", 36864)
        assert result
        assert repr(result).startswith("98.1 passed. Bytes\nWhy: second\n")
        assert 'role="status"' in result._repr_html_()

    def test_a_number_has_its_unit_and_one_hint_and_no_answer(self) -> None:
        result = lessons.check("98.1", 32800)
        assert not result
        assert repr(result) == (
            "98.1 not yet. 32,800 bytes is not right.\nHint: first\n"
            '`lessons.hint("98.1", 2)` says more.'
        )
        assert "36" not in result._repr_html_()

    def test_the_first_difference_has_its_coordinates(self) -> None:
        message = lessons.check("98.2", [1, 5, 6]).message
        assert message == "First difference at [1]: 5 is not right."

    def test_blank(self) -> None:
        assert lessons.check("98.2", ...).message == BLANK
        assert lessons.check("98.3", lambda items: ...).message == BLANK

    def test_a_function_is_compared_case_by_case(self) -> None:
        def slip(items: list[int]) -> list[int]:
            items.append(0)  # the next case and the truth do not see this
            return [2 * item for item in items][:1]

        message = lessons.check("98.3", slip).message
        assert message == "slip([2, 3]): it has 1 elements, not 2."

        def add(items: list[int]) -> list[int]:
            return [item + 1 for item in items]

        message = lessons.check("98.3", add).message
        assert message == "add([2, 3])[0] is 3, and should be 4."

    def test_a_function_that_raises(self) -> None:
        def attempt(items: list[int]) -> NoReturn:
            raise KeyError("a\nb")

        message = lessons.check("98.3", attempt).message
        assert message == "attempt([1]) raises KeyError: 'a\\nb'"
        assert "SystemExit" in lessons.check("98.3", lambda _: sys.exit(1)).message
        assert "TypeError" in lessons.check("98.3", lambda: 1).message

    def test_a_result_in_place_of_the_function(self) -> None:
        message = lessons.check("98.3", [2]).message
        assert message == "Pass the function itself, not [2]."

    def test_a_broken_exercise_says_so(self) -> None:
        result = lessons.check("98.4", 1)
        assert not result
        assert result.message == "The check itself failed: ValueError: no such tile"

    @pytest.mark.parametrize("id", ["98.9", "", None, 98.1, "é"])
    def test_an_unknown_id(self, id: Any) -> None:
        if id == 98.1:
            assert lessons.check(id, 36864)
            return
        assert "no exercise" in lessons.check(id, 1).message
        assert "no exercise" in repr(lessons.hint(id))

    def test_hints(self) -> None:
        assert repr(lessons.hint("98.1", 2)) == "Hint 2 of 2. second"
        assert "<strong>Hint 1 of 2.</strong> first" in lessons.hint("98.1").html
        for odd in (0, 3, "1", None):
            assert "has hints 1 to 2" in repr(lessons.hint("98.1", odd))

    def test_a_text_becomes_html_safely(self) -> None:
        html = lessons.check("98.2", ["<script>", 2, 3])._repr_html_()
        assert "<script>" not in html


def test_the_package_needs_no_ipython() -> None:
    code = (
        "import sys; sys.modules['IPython'] = None; from fp4ref import lessons; "
        "print(lessons.check('01.1', ...)); print(lessons.start('00_start_here'))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert "Nothing is answered yet." in done.stdout
