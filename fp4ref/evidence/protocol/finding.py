"""finding: what can go wrong in a protocol, with the books and a witness."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

Failure = Literal[
    "over-arrival",
    "early phase",
    "premature pass",
    "stale count",
    "overrun",
    "race",
    "exit",
    "bytes",
    "deadlock",
]
Verdict = Literal["error", "incomplete", "clean"]

NON_CONFLUENT: frozenset[Failure] = frozenset(
    ("early phase", "premature pass", "stale count", "race")
)
"""Failures in which two schedules do different things and both may end."""
SHOWN = 40
"""Steps of a witness that are printed, its last ones; JSON has all of them."""

RULES: dict[Failure, tuple[str, str]] = {
    "over-arrival": (
        "a phase takes exactly its expected arrivals [PTX: mbarrier]",
        "initialise the barrier with the number of real arrivals",
    ),
    "early phase": (
        "a phase ends when no arrival is pending and the tx-count is 0; what comes "
        "later counts in the next one [PTX: mbarrier]",
        "expect all bytes of a phase before its last arrival, in the same statement if "
        "one can",
    ),
    "premature pass": (
        "a parity tells only the current phase from the one before [PTX: "
        "mbarrier.test_wait.parity]",
        "flip the parity whenever the ring wraps, and wait for every phase in turn",
    ),
    "stale count": (
        "an arrival and its bytes count in the phase that is current when they come "
        "[PTX: mbarrier]",
        "let who arrives first wait until the phase before is complete",
    ),
    "overrun": (
        "a parity tells only the current phase from the one before: a waiter must look "
        "before the next phase completes [PTX: mbarrier.test_wait.parity]",
        "let the next phase need an arrival from every waiter",
    ),
    "race": (
        "two accesses of the same bytes, one of them a write, are ordered by a barrier "
        "or another completion mechanism [PTX: memory consistency model]",
        "wait for the barrier that the first of them completes",
    ),
    "exit": (
        "what lands in shared memory or TMEM, or reads it, does so before the CTA "
        "exits [PTX: memory consistency model]",
        "let a warp wait for it at the end: for its barrier, or its group",
    ),
    "bytes": (
        "the tx-count of a phase returns to 0 [PTX: mbarrier]",
        "expect as many bytes as the copies of the phase write",
    ),
    "deadlock": (
        "every wait needs an arrival that will come",
        "compare what the phase expects with what its arrivals give",
    ),
}
"""Rule with its source, and remedy, of each failure."""


@dataclass(frozen=True)
class Finding:
    """One failure that some schedule has.

    Attributes
    ----------
    what
        What happens, in words.
    barrier, generation
        Where: the barrier's name and its phase from 0; empty and -1 for a race.
    expected, found
        The books of that phase, such as ``"32 arrivals"``.
    who, source
        The step that fails, and its line.
    other, other_source
        The step that should have come first, or whose count is unlike its siblings'.
    witness
        The shortest schedule that shows it, one line a step.
    """

    failure: Failure
    what: str
    barrier: str = ""
    generation: int = -1
    expected: str = ""
    found: str = ""
    who: str = ""
    source: str = ""
    other: str = ""
    other_source: str = ""
    witness: tuple[str, ...] = ()

    @property
    def rule(self) -> str:
        """The rule that is broken, with its source."""
        return RULES[self.failure][0]

    @property
    def remedy(self) -> str:
        """What to do about it."""
        return RULES[self.failure][1]

    @property
    def confluent(self) -> bool:
        """Whether all schedules that go on to their end give the same result."""
        return self.failure not in NON_CONFLUENT

    def with_witness(self, lines: tuple[str, ...]) -> Finding:
        """Return the finding with its schedule."""
        return replace(self, witness=lines)

    def to_dict(self) -> dict[str, Any]:
        """Return every part, for JSON."""
        derived = {"rule": self.rule, "remedy": self.remedy}
        return asdict(self) | derived | {"confluent": self.confluent}

    def __str__(self) -> str:
        lines = [f"{self.failure}: {self.what}"]
        where = self.barrier
        if where and self.generation >= 0:
            where += f", generation {self.generation}"
        for label, text in (
            ("where", where),
            ("expected", self.expected),
            ("found", self.found),
            ("who", _at(self.who, self.source)),
            ("other", _at(self.other, self.other_source)),
            ("result", "" if self.confluent else "differs between schedules"),
            ("rule", self.rule),
            ("remedy", self.remedy),
        ):
            if text:
                lines.append(f"  {label}: {text}")
        if self.witness:
            lines.append(f"  witness, {len(self.witness)} steps:")
            hidden = max(0, len(self.witness) - SHOWN)
            lines += [f"    ({hidden} steps before)"] if hidden else []
            numbered = list(enumerate(self.witness, 1))[hidden:]
            lines += [f"    {i}. {line}" for i, line in numbered]
        return "\n".join(lines)


def _at(who: str, source: str) -> str:
    return f"{who} at {source}" if who and source else who or source
