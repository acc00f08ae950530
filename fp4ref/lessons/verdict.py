"""verdict: whether an answer is right, in one or two sentences, and layered hints.

Nothing here raises, whatever the answer is. In a notebook a verdict is shown at once,
together with a datum of its own mime type that a grader reads from the executed file
and no page displays.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from fp4ref.errors import InputError
from fp4ref.lessons import progress
from fp4ref.lessons.answer import Difference, first_difference, show
from fp4ref.lessons.exercise import Exercise, find
from fp4ref.lessons.page import FAILED, PASSED, Page, note

MIME = "application/vnd.fp4ref.check+json"
"""``{"exercise": id, "passed": bool}`` beside the text of a verdict."""

BLANK = "Nothing is answered yet."


@dataclass
class Result:
    """A verdict; true if the answer passed.

    Attributes
    ----------
    message
        One sentence: what was given, and where it first differs.
    more
        Sentences below it: a hint and where to find more; of a right answer why it is
        right, the next exercise, and how many have passed.
    """

    id: str
    passed: bool
    message: str
    more: tuple[str, ...] = ()
    what: str = "exercise"
    _shown_in: int | None = field(default=None, init=False, repr=False, compare=False)

    def __bool__(self) -> bool:
        return self.passed

    @property
    def _label(self) -> str:
        return f"{self.id} {'passed.' if self.passed else 'not yet.'}"

    def __repr__(self) -> str:
        return "\n".join([f"{self._label} {self.message}".rstrip(), *self.more])

    def _repr_html_(self) -> str:
        colour = PASSED if self.passed else FAILED
        return note(self._label, [self.message, *self.more], colour, role="status")

    def _ipython_display_(self) -> None:
        """Show the verdict, unless this cell has shown it."""
        from IPython.core.getipython import get_ipython
        from IPython.display import display

        shell = get_ipython()
        count = getattr(shell, "execution_count", 0)
        if self._shown_in == count:
            return
        self._shown_in = count
        datum = {self.what: self.id, "passed": self.passed}
        bundle = {
            "text/plain": repr(self),
            "text/html": self._repr_html_(),
            MIME: datum,
        }
        display(bundle, raw=True)  # type: ignore[no-untyped-call]


def announce(result: Result) -> Result:
    """Show a verdict at once where a notebook runs; return it."""
    try:
        from IPython.core.getipython import get_ipython
    except ImportError:
        return result
    if get_ipython() is not None:
        result._ipython_display_()
    return result


def check(id: str, answer: Any) -> Result:
    """Compare an answer with what the package computes; raises nothing.

    Parameters
    ----------
    answer
        ``...`` stands for no answer. For an exercise that asks for a function: the
        function itself.
    """
    result = judge(id, answer)
    if result and "FP4REF_STATIC" not in os.environ:  # a page counts for its reader
        result.more += (progress.passed(result.id),)
    return announce(result)


def judge(id: str, answer: Any) -> Result:
    """Return what `check` shows."""
    try:
        exercise = find(id)
    except InputError as error:
        return Result(str(id), False, str(error))
    try:
        problem = _problem(exercise, answer)
    except Exception as error:  # the package's own answer could not be computed
        problem = f"The check itself failed: {type(error).__name__}: {error}"
        return Result(exercise.id, False, problem)
    if problem is None:
        after = (f"Why: {exercise.because}", progress.next_after(exercise.id))
        return Result(exercise.id, True, exercise.title, after)
    ask = f'`lessons.hint("{exercise.id}", 1)`'
    if problem == BLANK:
        return Result(exercise.id, False, BLANK, (f"{ask} gives a hint.",))
    more = f'`lessons.hint("{exercise.id}", 2)` says more.'
    return Result(exercise.id, False, problem, (f"Hint: {exercise.hints[0]}", more))


def hint(id: str, number: int = 1) -> Page:
    """Return one of the hints of an exercise, from 1; raises nothing."""
    try:
        hints = find(id).hints
    except InputError as error:
        return _hint("No hint.", str(error))
    if not isinstance(number, int) or not 1 <= number <= len(hints):
        return _hint("No such hint.", f"{id} has hints 1 to {len(hints)}.")
    return _hint(f"Hint {number} of {len(hints)}.", hints[number - 1])


def _hint(label: str, text: str) -> Page:
    return Page(f"{label} {text}", note(label, [text]))


def _problem(exercise: Exercise, answer: Any) -> str | None:
    """What is wrong with an answer, in one sentence; None if nothing is."""
    if answer is ... or answer is None:
        return BLANK
    if exercise.cases is None:
        difference = first_difference(answer, exercise.truth, exercise.unit)
        return _sentence(difference, reveal=False) if difference else None
    if not callable(answer):
        return f"Pass the function itself, not {show(answer)}."
    for arguments in exercise.cases():
        if problem := _case(exercise, answer, arguments):
            return problem
    return None


def _case(
    exercise: Exercise, answer: Callable[..., Any], arguments: tuple[Any, ...]
) -> str | None:
    """What goes wrong for one set of arguments."""
    truth = exercise.solve(*copy.deepcopy(arguments))
    words = ", ".join(show(each) for each in arguments)
    call = f"{show(answer)}({words})".replace("<lambda>", "answer", 1)
    try:
        given = answer(*copy.deepcopy(arguments))
    except (Exception, SystemExit) as error:
        reason = " ".join(str(error).split())[:200]
        return f"{call} raises {type(error).__name__}: {reason}"
    if given is ...:
        return BLANK
    if given is None and truth is not None:
        return f"{call} returns nothing."
    difference = first_difference(given, truth, exercise.unit)
    return _sentence(difference, call, reveal=True) if difference else None


def _sentence(difference: Difference, call: str = "", *, reveal: bool) -> str:
    """A difference as a sentence; the truth is named only for a function's case."""
    what, expected = difference.what, difference.expected
    place = f"{call}{difference.where}" if call else difference.where
    if not expected:
        subject = place or "The answer"
        return f"{subject}: {what}."
    if reveal:
        return f"{place} is {what}, and should be {expected}."
    if place:
        return f"First difference at {place}: {what} is not right."
    return f"{what} is not right."
