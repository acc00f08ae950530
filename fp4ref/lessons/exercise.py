"""exercise: a question of a notebook, the package's answer to it, and its hints.

The answer is a function, so that no number is written down twice::

    @exercise("03.1", title="Bytes of a stage", hints=("...", "..."), wrong=(32800,))
    def stage_bytes():
        return plan(GemmConfig.example_72b()).stage_tx_bytes

Modules ``exercises/lesson_NN.py`` declare them; the one that an id names is read when
that id is asked for.
"""

from __future__ import annotations

import difflib
import pkgutil
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import import_module, resources
from typing import Any

from fp4ref.errors import InputError
from fp4ref.lessons import exercises

_ID = re.compile(r"(\d\d)\.\d+")

_DECLARED = re.compile(r"""(?m)^@(?:exercise\(\s*"\d\d\.|riddle\(\s*)(\d+)\b""")
"""How the modules of exercises begin one."""

_REGISTRY: dict[str, Exercise] = {}


@dataclass(frozen=True)
class Exercise:
    """One question.

    Attributes
    ----------
    frames
        Ids of the frame index that it is about.
    hints
        From the vague to the concrete.
    wrong
        Answers of someone who believes a wrong claim, or of the usual slip.
    solve
        Computes the answer; with `cases`, the function that is asked for.
    cases
        Arguments on which a function that is asked for is compared.
    unit
        Words after a number.
    why
        What a right answer is told; without it the last hint, the most concrete one.
    """

    id: str
    title: str
    frames: tuple[str, ...]
    hints: tuple[str, ...]
    wrong: tuple[Any, ...]
    solve: Callable[..., Any]
    cases: Callable[[], Sequence[tuple[Any, ...]]] | None = None
    unit: str = ""
    why: str = ""

    @property
    def because(self) -> str:
        """Why the answer is what it is, in a sentence or two."""
        return self.why or self.hints[-1]

    @cached_property
    def truth(self) -> Any:
        """The answer: a value, or the function that is asked for."""
        return self.solve if self.cases else self.solve()


def exercise(
    id: str,
    *,
    title: str,
    hints: tuple[str, ...],
    wrong: tuple[Any, ...],
    frames: tuple[str, ...] = (),
    cases: Callable[[], Sequence[tuple[Any, ...]]] | None = None,
    unit: str = "",
    why: str = "",
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare the exercise that the decorated function solves.

    Raises
    ------
    InputError
        The id is not ``NN.n`` or is taken, or there are fewer than two hints or no
        wrong answer.
    """
    if not _ID.fullmatch(id):
        raise InputError(f"exercise id {id!r}: write it NN.n, for example '03.1'")
    if len(hints) < 2 or not wrong:
        raise InputError(f"exercise {id}: give two hints or more and a wrong answer")

    def declare(solve: Callable[..., Any]) -> Callable[..., Any]:
        earlier = _REGISTRY.get(id)
        if earlier and _place(earlier.solve) != _place(solve):
            raise InputError(f"exercise {id} is declared twice")
        _REGISTRY[id] = Exercise(
            id, title, frames, hints, wrong, solve, cases, unit, why
        )
        return solve

    return declare


def _place(solve: Callable[..., Any]) -> tuple[str, str]:
    return solve.__module__, solve.__qualname__


def find(id: str) -> Exercise:
    """Return one exercise.

    Raises
    ------
    InputError
        There is none; the message names near ids.
    """
    lesson = str(id).partition(".")[0]
    load(lesson)
    found = _REGISTRY.get(str(id))
    if found is None:
        known = list(of_lesson(lesson)) or list(every())
        near = difflib.get_close_matches(str(id), known, n=3, cutoff=0.4)
        other = f"near it: {', '.join(near)}" if near else "ids look like 03.1"
        raise InputError(f"There is no exercise {id!r}; {other}.")
    return found


def every() -> dict[str, Exercise]:
    """Return all declared exercises by id, in order."""
    for module in pkgutil.iter_modules(exercises.__path__):
        load(module.name.removeprefix("lesson_"))
    return dict(sorted(_REGISTRY.items(), key=lambda item: _number(item[0])))


def of_lesson(number: str) -> dict[str, Exercise]:
    """Return the exercises of notebook ``"03"`` by id, in order."""
    load(number)
    found = {id: each for id, each in _REGISTRY.items() if id[:3] == f"{number}."}
    return dict(sorted(found.items(), key=lambda item: _number(item[0])))


@cache
def ids() -> tuple[str, ...]:
    """Return the ids of all exercises in order, and import none: an answer is quick."""
    found = []
    for file in resources.files(exercises).iterdir():
        if name := re.fullmatch(r"lesson_(\d\d)\.py", file.name):
            declared = _DECLARED.findall(file.read_text("utf-8"))
            found += [f"{name[1]}.{number}" for number in declared]
    return tuple(sorted(found, key=_number))


def load(number: str) -> None:
    """Read the module of notebook ``"03"``, if there is one."""
    name = f"{exercises.__name__}.lesson_{number}"
    if not re.fullmatch(r"\d\d", number):
        return
    try:
        import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise


def _number(id: str) -> tuple[int, ...]:
    return tuple(int(part) for part in id.split("."))
