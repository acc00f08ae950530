"""exploration: every schedule of a traced run's protocol."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from fp4ref.arguments import require_choice, require_integer
from fp4ref.errors import InputError
from fp4ref.evidence.protocol.certificate import ended_early, trace_of, verdict
from fp4ref.evidence.protocol.counting import Undecided, broken
from fp4ref.evidence.protocol.finding import Finding, Verdict
from fp4ref.evidence.protocol.order import reference
from fp4ref.evidence.protocol.program import Program
from fp4ref.evidence.protocol.projection import project, rings
from fp4ref.evidence.protocol.recording import programs
from fp4ref.evidence.protocol.schedules import MOST_STATES, Search, search
from fp4ref.execution.runs import Run
from fp4ref.trace import Trace

NEAR_STATES = 20_000
"""States near the start in which a shorter schedule is looked for."""
MOST_STEPS = 1000
"""Steps of a CTA that is explored; a search of more takes minutes."""


@dataclass(frozen=True)
class Exploration:
    """What a search of one CTA, or of one of its rings, has seen.

    Attributes
    ----------
    steps
        Of the program.
    states
        Steps that the search took, each to one state.
    interleavings
        Distinguishable schedules: accesses of the same bytes, a phase's last arrival or
        a peek's answer come in another order. 0 if one fails or the search is not
        complete.
    schedules
        All orders of all steps, counted only without the reduction.
    finding
        What fails, with the shortest schedule that shows it.
    incomplete
        Why it cannot say that all is right.
    """

    name: str
    steps: int
    states: int
    interleavings: int
    schedules: int | None
    finding: Finding | None
    incomplete: tuple[str, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """Error before incomplete before clean."""
        return verdict(self.finding is not None, bool(self.incomplete))

    @property
    def ok(self) -> bool:
        """Whether every schedule was looked at and none fails."""
        return self.verdict == "clean"

    def to_dict(self) -> dict[str, Any]:
        """Return every part, for JSON."""
        return {
            "name": self.name,
            "verdict": self.verdict,
            "steps": self.steps,
            "states": self.states,
            "interleavings": self.interleavings,
            "schedules": self.schedules,
            "finding": self.finding.to_dict() if self.finding else None,
            "incomplete": list(self.incomplete),
        }

    def __str__(self) -> str:
        lines = [f"{self.name}: {self.verdict}. {self.states:,} states visited"]
        if self.interleavings:
            lines[0] += f", {self.interleavings:,} distinguishable interleavings"
        if self.schedules is not None:
            lines[0] += f", {self.schedules:,} schedules in all"
        lines += [f"  incomplete: {why}" for why in self.incomplete]
        if self.finding:
            lines += [f"  {line}" for line in str(self.finding).splitlines()]
        return "\n".join(lines)


def explore(
    run: Run | Trace,
    *,
    ring: str | None = None,
    reduction: bool = True,
    most_states: int = MOST_STATES,
) -> list[Exploration]:
    """Search every schedule of each CTA's barriers and buffers.

    Parameters
    ----------
    run
        A traced run of the emulator or of PTX, or its trace.
    ring
        Search only this ring, such as ``"mainloop"``; the rest of the program is gates.
    reduction
        False visits every state: for very small programs.
    most_states
        Give up after so many states; the verdict is then *incomplete*.

    Raises
    ------
    InputError
        The run has no trace, the ring is unknown, or a CTA has more than `MOST_STEPS`.
    TraceError
        The trace has no plan, or no mbarrier events.
    """
    require_choice(reduction, "reduction", (False, True))
    most = require_integer(most_states, "most_states", 1)
    trace = trace_of(run)
    found = programs(trace)
    if ring is not None:
        require_choice(ring, "ring", tuple(rings(found[0])))
        found = [project(program, ring) for program in found]
    for program in found:
        if len(program.steps) > MOST_STEPS:
            raise InputError(
                f"{program.name} has {len(program.steps):,} steps, and {MOST_STEPS:,} "
                "are the most that are explored. Nearest choices: one tile, run(..., "
                "tiles=[(0, 0)]); one ring, explore(run, ring='mainloop'); or "
                "certify(run), which needs no search"
            )
    ended = ended_early(trace)
    return [
        explore_program(p, reduction=reduction, most_states=most, ended=ended)
        for p in found
    ]


def explore_program(
    program: Program,
    *,
    reduction: bool = True,
    most_states: int = MOST_STATES,
    ended: str = "",
) -> Exploration:
    """Search one program; `ended` says why its run is not whole."""
    seen = search(program, reduction=reduction, most_states=most_states)
    incomplete = [f"{name} is not modelled" for name in program.unmodelled]
    incomplete += [ended] if ended else []
    if not seen.complete:
        incomplete.append(
            f"{most_states:,} states were visited and more are left; explore fewer "
            "k-tiles or one ring, or use certify"
        )
    return Exploration(
        program.name,
        len(program.steps),
        seen.states,
        seen.interleavings,
        seen.schedules,
        _shortest(program, seen),
        tuple(incomplete),
    )


def _shortest(program: Program, seen: Search) -> Finding | None:
    """Return the failure with the shortest schedule that shows one.

    Happens-before says which steps a failure needs. If the first schedule fails, not
    all is known of it, and a short search without reduction looks too.
    """
    if seen.finding is None:
        return None
    found = [_shown(program, seen)]
    with suppress(Undecided):
        found += broken(program)
    if reference(program).finding is not None:
        near = search(program, reduction=False, most_states=NEAR_STATES)
        found += [_shown(program, near)] if near.finding else []
    return min(found, key=lambda each: len(each.witness))


def _shown(program: Program, seen: Search) -> Finding:
    assert seen.finding is not None
    lines = tuple(program.describe(number) for number in seen.path)
    return seen.finding.with_witness(lines)
