"""race: what the engine found in a run: races, the verdict, and their words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from fp4ref.errors import HardwareFault
from fp4ref.hardware.order.access import Access
from fp4ref.hardware.order.rules import Failure

Severity = Literal["error", "review", "allowed"]
"""What shipped kernels rely on, and ``ordering="shipped"`` lets pass, is allowed."""

Verdict = Literal["clean", "review", "incomplete", "error"]

SHOWN = 100
"""Races that are kept with all their words; the others are counted."""


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two accesses of a race.

    Attributes
    ----------
    who, lanes
        The warp, and which of its lanes; 1 in the emulator, whose warps move as one.
    operation, verb
        PTX name, and whether it reads or writes.
    source
        ``file:line`` of the statement.
    step
        Event of the trace; -1 untraced.
    """

    who: str
    lanes: int
    operation: str
    verb: str
    source: str
    step: int

    def __str__(self) -> str:
        at = f" at {self.source}" if self.source else ""
        step = f", step {self.step}" if self.step >= 0 else ""
        return f"{self.operation} of {self.who} {self.verb}{at}{step}"

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class Race:
    """Two accesses of the same bytes that nothing orders.

    Attributes
    ----------
    failure
        What is missing.
    first, second
        The accesses, in the order in which this run happened to do them.
    space, runs
        The memory, and the bytes as (first address, count).
    where
        The first byte in words.
    """

    failure: Failure
    severity: Severity
    first: Side
    second: Side
    space: str
    runs: tuple[tuple[int, int], ...]
    where: str

    @property
    def nbytes(self) -> int:
        """How many bytes both touch."""
        return sum(count for _, count in self.runs)

    def __str__(self) -> str:
        words = self.failure.value
        return "\n".join(
            [
                f"{self.severity}: {words.name}",
                f"  first: {self.first}",
                f"  second: {self.second}",
                f"  where: {self.where}, {self.nbytes} bytes",
                f"  rule: {words.rule}",
                f"  remedy: {words.remedy}",
            ]
        )

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        words = self.failure.value
        return {
            "failure": words.name,
            "severity": self.severity,
            "first": self.first.to_dict(),
            "second": self.second.to_dict(),
            "space": self.space,
            "runs": [list(run) for run in self.runs],
            "nbytes": self.nbytes,
            "where": self.where,
            "rule": words.rule,
            "remedy": words.remedy,
        }


class RaceFault(HardwareFault):
    """Accesses of the same bytes that nothing orders.

    Its `races` are all of them, up to a limit.
    """

    def __init__(self, races: Sequence[Race], count: int) -> None:
        first = races[0]
        words = first.failure.value
        more = f" (1 of {count})" if count > 1 else ""
        super().__init__(
            f"{words.name}{more}",
            who=f"{first.first}; {first.second}",
            where=f"{first.where}, {first.nbytes} bytes",
            rule=words.rule,
            remedy=words.remedy,
        )
        self.races = tuple(races)

    def __str__(self) -> str:
        rest = "".join(f"\n{race}" for race in self.races[1:])
        return super().__str__() + rest


class Statements(NamedTuple):
    """Where the two accesses of a race come from, whoever executed them.

    Attributes
    ----------
    first, second
        PTX name and ``file:line``.
    """

    failure: Failure
    severity: Severity
    first: tuple[str, str]
    second: tuple[str, str]


class Findings:
    """The races of a run, counted without limit and kept up to one.

    Attributes
    ----------
    statements
        How many races there are between two statements.
    unsure
        Why the check is not complete, if it is not.
    stopped
        Whether the launch is over budget: its accesses cannot be told apart any more.
    """

    def __init__(self) -> None:
        self.races: list[Race] = []
        self.statements: dict[Statements, int] = {}
        self.unsure: list[str] = []
        self.stopped = False
        self._seen: set[tuple[object, ...]] = set()

    def add(self, race: Callable[[], Race], between: Statements, *who: object) -> None:
        """Count a race, and keep it if there is room, one for each pair of warps."""
        if self.stopped:
            return
        self.statements[between] = self.statements.get(between, 0) + 1
        key = (between, *who)
        if key not in self._seen and len(self.races) < SHOWN:
            self._seen.add(key)
            self.races.append(race())

    @property
    def counts(self) -> dict[tuple[Failure, Severity], int]:
        """How many races there are of each failure and severity."""
        found: dict[tuple[Failure, Severity], int] = {}
        for between, count in self.statements.items():
            key = between.failure, between.severity
            found[key] = found.get(key, 0) + count
        return found

    def doubt(self, why: str) -> None:
        """Say that the check is not complete."""
        if why not in self.unsure:
            self.unsure.append(why)

    def stop(self, limit: str) -> None:
        """Find nothing more in this launch, which is over a limit."""
        self.stopped = True
        self.doubt(
            f"more than {limit} in one launch: the order of later ones is not checked; "
            "run fewer tiles, as run(..., tiles=[(0, 0)]), or a smaller K"
        )

    def count(self, severity: Severity) -> int:
        """How many races of one severity there are."""
        return sum(n for (_, s), n in self.counts.items() if s == severity)

    @property
    def verdict(self) -> Verdict:
        """The worst that was found: error, then incomplete, then review."""
        if self.count("error"):
            return "error"
        if self.unsure:
            return "incomplete"
        return "review" if self.count("review") else "clean"

    @property
    def allowed(self) -> dict[str, int]:
        """What the run relies on and the PTX text does not promise, by name."""
        return {
            failure.value.name: count
            for (failure, severity), count in self.counts.items()
            if severity == "allowed"
        }

    def of(self, severity: Severity) -> list[Race]:
        """Return the kept races of one severity."""
        return [race for race in self.races if race.severity == severity]

    def to_dict(self) -> dict[str, Any]:
        """JSON values of the whole report."""
        return {
            "verdict": self.verdict,
            "counts": [
                {"failure": f.value.name, "severity": s, "count": n}
                for (f, s), n in self.counts.items()
            ],
            "unsure": list(self.unsure),
            "races": [race.to_dict() for race in self.races],
        }


def side(access: Access, lanes: int, source: str) -> Side:
    """Describe one access of a race."""
    verb = "writes" if access.is_write else "reads"
    return Side(access.actor.who, lanes, access.operation, verb, source, access.step)
