"""riddle_run: a riddle of the gallery, with the run that decides it.

A cell shows what a user would see, what the run reports, and the answers that are
believed. Each answer opens by a click or by Enter and says what is wrong with it; in
text `RiddleRun.choose` says the same.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from html import escape

from fp4ref.arguments import require_integer
from fp4ref.errors import HardwareFault, InputError
from fp4ref.evidence.faults import Catch, run_fault, run_twin
from fp4ref.evidence.faults.gallery import Fault, FormName
from fp4ref.evidence.faults.riddles import RIDDLES
from fp4ref.lessons.page import PASSED, PLAIN, Page, code, inline, note, table
from fp4ref.trace import Trace

_OPEN = "cursor:pointer;padding:0.15em 0"


@dataclass(frozen=True, slots=True)
class Choice:
    """One answer.

    Attributes
    ----------
    because
        Why it is wrong; for the right one the cause.
    """

    letter: str
    text: str
    because: str
    right: bool

    @property
    def verdict(self) -> Page:
        """What choosing it says."""
        word, colour = ("Yes.", PASSED) if self.right else ("No.", PLAIN)
        said = note(word, [self.because], colour)
        return Page(f"({self.letter}) {word} {self.because}", said)


class RiddleRun:
    """A riddle and its run, as the last line of a cell shows it.

    Attributes
    ----------
    number, riddle
        Which it is, its question and its answers.
    form
        Where the mistake is: the emulator, or PTX if it has no other form.
    caught
        What the run of the mistake showed.
    """

    def __init__(self, number: int) -> None:
        self.number, self.riddle = number, RIDDLES[number - 1]
        self.form: FormName = next(iter(self.mistake.forms))
        self.caught = run_fault(self.mistake, self.form)

    @property
    def mistake(self) -> Fault:
        """The row of the gallery."""
        return self.riddle.fault

    @property
    def fault(self) -> HardwareFault:
        """What the machine refused.

        Raises
        ------
        InputError
            It refused nothing; the run was compared.
        """
        if self.caught.fault is None:
            raise InputError(
                f"the machine refuses nothing in {self.mistake.name}; its run differs "
                "from the clean one: see .caught.difference"
            )
        return self.caught.fault

    @property
    def trace(self) -> Trace:
        """Every event of the run with the mistake."""
        return _trace(self.caught)

    @cached_property
    def clean(self) -> Catch:
        """The run of the clean twin."""
        return run_twin(self.mistake, self.form)

    @property
    def clean_trace(self) -> Trace:
        """Every event of the clean twin."""
        return _trace(self.clean)

    @property
    def choices(self) -> tuple[Choice, ...]:
        """The answers, in an order that tells nothing."""
        riddle, cause = self.riddle, self.mistake.cause
        answers = [(riddle.right, cause, True)]
        answers += [(each.belief, each.because, False) for each in riddle.wrong]
        answers.sort(key=lambda each: hashlib.blake2b(each[0].encode()).digest())
        return tuple(
            Choice(letter, *each) for letter, each in zip("abcd", answers, strict=False)
        )

    def choose(self, letter: str) -> Page:
        """Say what is right or wrong with one of the answers.

        Raises
        ------
        InputError
            There is no such answer.
        """
        for each in self.choices:
            if each.letter == letter:
                return each.verdict
        letters = ", ".join(each.letter for each in self.choices)
        raise InputError(f"{letter!r} is none of the answers; choose from {letters}")

    def mend(self) -> Page:
        """Show cause, remedy, the changed line, and what the clean twin says."""
        change = self.mistake.forms[self.form].change
        wrong, right = change.wrong.strip("\n"), change.right.strip("\n")
        wrong = wrong or "(nothing)"
        rows = {
            "Mistake": self.mistake.title,
            "Cause": self.mistake.cause,
            "Remedy": self.mistake.remedy,
            "Line": change.line,
            "Clean twin": self.clean.report(),
        }
        lines = [f"{name}: {text}" for name, text in rows.items()]
        lines += ["-", wrong, "+", right]
        language = "python" if change.file.endswith(".py") else "text"
        body = table(self._title, rows)
        for word, text in (("wrong", wrong), ("right", right)):
            body += code(f"Riddle {self.number}: {word}", text, language)
        summary = "Cause, remedy and the clean twin"
        return Page("\n".join(lines), _details(summary, body))

    @property
    def _title(self) -> str:
        return f"Riddle {self.number} of {len(RIDDLES)}"

    def _rows(self) -> dict[str, str]:
        where = {"emulator": "in the emulator", "ptx": "as PTX"}[self.form]
        run = f"{self.mistake.subject_in_words}, {where}"
        return {"Symptom": self.mistake.symptom, "Run": run}

    def __repr__(self) -> str:
        lines = [self._title]
        lines += [f"{name}: {text}" for name, text in self._rows().items()]
        lines += ["", self.caught.report(), "", self.riddle.question]
        lines += [f"({each.letter}) {each.text}" for each in self.choices]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        answers = "".join(
            _details(f"({each.letter}) {each.text}", each.verdict.html)
            for each in self.choices
        )
        question = f"<p><strong>{inline(self.riddle.question)}</strong></p>"
        report = code(
            f"Riddle {self.number}: the run reports", self.caught.report(), "text"
        )
        return table(self._title, self._rows()) + report + question + answers


def riddle(number: int) -> RiddleRun:
    """Run one of the riddles of the gallery, from 1; its name would tell too much.

    Raises
    ------
    InputError
        There is no such riddle.
    """
    require_integer(number, "number", 1, len(RIDDLES))
    return RiddleRun(number)


def _trace(caught: Catch) -> Trace:
    assert caught.trace is not None, "every run of the gallery is recorded"
    return caught.trace


def _details(summary: str, body: str) -> str:
    """Return HTML that opens by a click or by Enter, with no script."""
    head = f'<summary style="{_OPEN}">{escape(summary)}</summary>'
    return f'<details style="margin:0.2em 0">{head}{body}</details>'
