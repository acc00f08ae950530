"""result: what a check found, for a reader and for a program."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from fp4ref.errors import RefusedForm
from fp4ref.evidence.check.finding import (
    RELIED_ON,
    Finding,
    field_lines,
    in_words,
    indented,
)
from fp4ref.evidence.check.nearest import nearest
from fp4ref.evidence.check.one_run import Outcome
from fp4ref.gaps import GAPS
from fp4ref.trace import Trace

SCHEMA: Final = 1
Status = Literal["clean", "fault", "mismatch", "bad input", "unsupported"]

EXIT_STATUS: Final[dict[Status, int]] = {
    "clean": 0,
    "fault": 1,
    "mismatch": 1,
    "bad input": 2,
    "unsupported": 3,
}
"""Exit status of the command, by name."""


@dataclass(frozen=True)
class Unsupported:
    """A form of an instruction that this machine does not model.

    Attributes
    ----------
    lines
        Of the PTX text.
    nearest
        The nearest opcode that it models; empty without one.
    gap
        What is missing, in words.
    """

    opcode: str
    lines: tuple[int, ...]
    nearest: str
    gap: str

    @classmethod
    def of(cls, form: RefusedForm) -> Unsupported:
        """Find the nearest form, and the row of the list of gaps."""
        what = {gap.id: f"{gap.operation}: {gap.what}" for gap in GAPS}
        return cls(
            form.opcode, form.lines, nearest(form.opcode), what.get(form.gap, form.gap)
        )

    def report(self) -> str:
        """Say it in two lines."""
        some = ", ".join(map(str, self.lines[:5]))
        more = ", ..." if len(self.lines) > 5 else ""
        word = "lines" if len(self.lines) > 1 else "line"
        at = f" (PTX {word} {some}{more})" if self.lines else ""
        if self.nearest == self.opcode:
            near = "the opcode is supported, with other operands or in another use"
        else:
            near = self.nearest or "none"
        lines = [f"unsupported: {self.opcode}{at}", f"  nearest:  {near}"]
        return "\n".join([*lines, f"  gap:      {self.gap}"])


@dataclass(frozen=True)
class Check:
    """Outcome of `check`.

    Attributes
    ----------
    kernel, entry
        Name of the text, and of its entry.
    findings
        Each once; errors first, then advisories.
    runs
        What ran, in order.
    unsupported
        Why nothing ran; empty if something did.
    outputs
        What the buffers held after the first run that ended, by name.
    trace
        Of the run that shows most, if one was asked for.
    """

    kernel: str
    entry: str
    findings: tuple[Finding, ...]
    runs: tuple[Outcome, ...] = ()
    unsupported: tuple[Unsupported, ...] = ()
    outputs: dict[str, NDArray[Any]] | None = None
    printed: tuple[str, ...] = ()
    trace: Trace | None = None

    @property
    def errors(self) -> tuple[Finding, ...]:
        """Findings that are no advisory."""
        return tuple(each for each in self.findings if not each.ok)

    @property
    def advisories(self) -> tuple[Finding, ...]:
        """What the kernel relies on beyond the PTX text."""
        return tuple(each for each in self.findings if each.ok)

    @property
    def status(self) -> Status:
        """The outcome by name."""
        if self.unsupported:
            return "unsupported"
        if any(each.kind != "mismatch" for each in self.errors):
            return "fault"
        return "mismatch" if self.errors else "clean"

    @property
    def exit_status(self) -> int:
        """0 clean, 1 a fault or a mismatch, 3 unsupported."""
        return EXIT_STATUS[self.status]

    @property
    def ok(self) -> bool:
        """Whether it is clean."""
        return self.status == "clean"

    def require_clean(self) -> None:
        """Raise unless the kernel is clean, with the report.

        Raises
        ------
        AssertionError
            Something was found, or the kernel could not be run.
        """
        if not self.ok:
            raise AssertionError(self.report())

    def report(self, *, full: bool = False) -> str:
        """Say what was found, in lines of about 80 columns.

        Parameters
        ----------
        full
            Every word of the advisories too, and not their names and lines only.
        """
        parts = [f"{self.entry}, in {self.kernel}" if self.entry else self.kernel]
        if self.runs:
            parts += field_lines("runs", in_words(each.name for each in self.runs))
            stopped = (each.name for each in self.runs if not each.ended)
            parts += field_lines("stopped", in_words(stopped))
        parts += [each.report() for each in self.unsupported]
        parts += [each.report() for each in (self.findings if full else self.errors)]
        if not full and self.advisories:
            parts += ["relies on, beyond the PTX text:", *self._short_advisories()]
        parts.append(self._last_line())
        return "\n".join(parts)

    def _short_advisories(self) -> list[str]:
        """Name each kind once, with its row of evidence and its lines."""
        found: dict[str, dict[str, None]] = {}
        for each in self.advisories:
            row = f" [{each.evidence.id}]" if each.evidence else ""
            name = each.name.removesuffix(RELIED_ON) + row
            places = (place.short for place in each.places)
            found.setdefault(name, {}).update(dict.fromkeys(places))
        return [
            line
            for name, places in found.items()
            for line in indented(f"{name}: {_some(places)}" if places else name)
        ]

    def _last_line(self) -> str:
        if self.unsupported:
            count = len(self.unsupported)
            forms = "1 form is" if count == 1 else f"{count} forms are"
            return f"unsupported: {forms} not modelled, and nothing ran"
        count = len(self.errors)
        known = len(self.advisories)
        tail = f", {known} advisories" if known > 1 else ", 1 advisory" if known else ""
        return f"{self.status}: {count} finding{'s' * (count != 1)}{tail}"

    def to_dict(self) -> dict[str, Any]:
        """JSON values; ``data/check_schema.json`` is their schema."""
        return {
            "schema": SCHEMA,
            "status": self.status,
            "exit_status": self.exit_status,
            "kernel": self.kernel,
            "entry": self.entry,
            "runs": [_run_values(each) for each in self.runs],
            "findings": [each.to_dict() for each in self.errors],
            "advisories": [each.to_dict() for each in self.advisories],
            "unsupported": [
                {
                    "opcode": each.opcode,
                    "lines": list(each.lines),
                    "nearest": each.nearest,
                    "gap": each.gap,
                }
                for each in self.unsupported
            ],
            "error": None,
        }


def refusal(kernel: str, error: Exception) -> dict[str, Any]:
    """JSON values of a check that bad input stopped."""
    empty = Check(kernel, "", ())
    return empty.to_dict() | {
        "status": "bad input",
        "exit_status": EXIT_STATUS["bad input"],
        "error": str(error),
    }


def _some(places: Iterable[str]) -> str:
    """Name the first four."""
    names = list(places)
    more = f" and {len(names) - 4} more" if len(names) > 4 else ""
    return ", ".join(names[:4]) + more


def _run_values(outcome: Outcome) -> dict[str, Any]:
    return {
        "schedule": outcome.schedule,
        "ordering": outcome.ordering,
        "ended": outcome.ended,
        "steps": outcome.steps,
        "same_as": outcome.same_as,
    }


def first_contents(
    outcomes: Sequence[Outcome],
) -> dict[str, tuple[NDArray[np.uint8], NDArray[np.bool_]]]:
    """Return what the first run that ended left."""
    return next((each.contents for each in outcomes if each.ended), {})
