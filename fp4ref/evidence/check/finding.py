"""finding: one thing that a check found, with its line, rule, evidence and remedy."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from textwrap import wrap
from typing import Any, Final, Literal

from fp4ref.evidence.check.kernel_text import KernelText
from fp4ref.evidence.fidelity import Rule

WIDTH: Final = 80
Kind = Literal[
    "race", "deadlock", "fault", "mismatch", "budget", "incomplete", "advisory"
]

RELIED_ON: Final = ", which shipped kernels rely on"

_MOST_PLACES = 4
"""Lines that one finding names."""

_OF_ORDER = frozenset({"ReadWhileInFlight", "MissingProxyFence", "UninitialisedRead"})
"""Faults that a missing order makes."""

_PTX = re.compile(r"PTX:(\d+)")


@dataclass(frozen=True, slots=True)
class Place:
    """A line of the user's kernel.

    Attributes
    ----------
    source
        ``file:line`` from ``.loc``; empty where the compiler left none.
    ptx_line
        Line of the PTX text; 0 where the source line is known instead.
    text
        That line.
    """

    source: str
    ptx_line: int = 0
    text: str = ""

    @classmethod
    def of(cls, statement: str, kernel: KernelText) -> Place:
        """Read ``file:line`` or ``PTX:line``."""
        if found := _PTX.fullmatch(statement):
            number = int(found[1])
            return cls("", number, kernel.line(number))
        return cls(statement)

    @property
    def short(self) -> str:
        """The line without its text."""
        return self.source or f"PTX line {self.ptx_line}"

    def __str__(self) -> str:
        if self.source:
            return self.source
        return f"PTX line {self.ptx_line}" + (f": {self.text}" if self.text else "")


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was found, however often it happened.

    Attributes
    ----------
    name
        The fault, or what is missing between two accesses.
    places
        Lines of the kernel, the one to look at first in front.
    evidence
        Row of the fidelity table that the rule rests on; None for the kernel's own
        checks and for results.
    runs
        In which runs it was seen.
    """

    kind: Kind
    name: str
    what: str
    places: tuple[Place, ...] = ()
    who: str = ""
    where: str = ""
    rule: str = ""
    remedy: str = ""
    evidence: Rule | None = None
    runs: tuple[str, ...] = ()

    @property
    def key(self) -> tuple[object, ...]:
        """What makes two findings one."""
        return self.kind, self.name, frozenset(self.places)

    @property
    def ok(self) -> bool:
        """Whether it stops no kernel."""
        return self.kind == "advisory"

    def report(self) -> str:
        """Say it in lines of at most 80 columns."""
        head = f"{self.kind}: {self.name}"
        lines = [head if self.name != self.kind else self.kind]
        lines += field_lines("what", self.what)
        for number, place in enumerate(self.places):
            lines += field_lines("at" if number == 0 else "and", str(place))
        for label in ("who", "where", "rule", "remedy"):
            lines += field_lines(label, getattr(self, label))
        if self.evidence:
            row = f"{self.evidence.id}: {self.evidence.evidence.value}"
            lines += field_lines("evidence", row)
        return "\n".join([*lines, *field_lines("seen in", in_words(self.runs))])

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        said = ("kind", "name", "what", "who", "where", "rule", "remedy")
        return {
            **{name: getattr(self, name) for name in said},
            "places": [
                {"source": p.source, "ptx_line": p.ptx_line, "text": p.text}
                for p in self.places
            ],
            "evidence": self.evidence.id if self.evidence else None,
            "runs": list(self.runs),
        }


def merged(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Put findings that are one together: the first words, and all runs.

    Of two accesses that nothing orders the race says most; the fault that the same
    statements met under some schedule is the same mistake.
    """
    every = list(findings)
    races = [each for each in every if each.kind == "race"]
    found: dict[tuple[object, ...], Finding] = {}
    for each in every:
        same = each
        if each.kind == "fault" and each.name in _OF_ORDER and each.places:
            covers = (r for r in races if set(each.places) <= set(r.places))
            same = next(covers, each)
        before = found.get(same.key)
        runs = (*before.runs, *each.runs) if before else each.runs
        found[same.key] = replace(before or same, runs=tuple(dict.fromkeys(runs)))
    return tuple(_joined(found.values()))


def _joined(findings: Iterable[Finding]) -> Iterator[Finding]:
    """Make one finding of those that differ in the other statement only."""
    groups: dict[tuple[object, ...], list[Finding]] = {}
    for each in findings:
        groups.setdefault((each.kind, each.name, each.places[:1]), []).append(each)
    for same in groups.values():
        first = same[0]
        if len(same) == 1 or not first.places:
            yield from same
            continue
        places = tuple(dict.fromkeys(place for each in same for place in each.places))
        runs = tuple(dict.fromkeys(run for each in same for run in each.runs))
        more = len(places) - _MOST_PLACES
        what = first.what + (f"; {more} more statements" if more > 0 else "")
        yield replace(first, what=what, places=places[:_MOST_PLACES], runs=runs)


def as_advisory(finding: Finding) -> Finding:
    """Return what only the PTX text forbids, and shipped kernels rely on."""
    if finding.ok:
        return finding
    return replace(finding, kind="advisory", name=finding.name + RELIED_ON)


def in_words(runs: Iterable[str]) -> str:
    """Name runs by schedule, those of both orderings together."""
    schedules: dict[str, list[str]] = {}
    for run in runs:
        schedule, _, ordering = run.rpartition(", ")
        schedules.setdefault(ordering, []).append(schedule)
    alike: dict[str, list[str]] = {}
    for ordering, names in schedules.items():
        alike.setdefault(", ".join(names), []).append(ordering)
    return "; ".join(
        f"{names} ({' and '.join(orderings)})" for names, orderings in alike.items()
    )


def field_lines(label: str, text: str) -> Sequence[str]:
    """Write a labelled text in lines of at most 80 columns; none if it is empty."""
    return indented(text, f"  {label + ':':10}") if text else ()


def indented(text: str, head: str = "  ") -> Sequence[str]:
    """Write a text in lines of at most 80 columns, below each other."""
    return wrap(
        " ".join(text.split()),
        WIDTH,
        initial_indent=head,
        subsequent_indent=" " * max(4, len(head)),
        break_on_hyphens=False,
    )
