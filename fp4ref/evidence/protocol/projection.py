"""projection: one ring of a program at a time, with gates for all the rest.

A ring's program keeps the steps on its barriers and the accesses of its cells. Whatever
else orders them is a gate: the steps that come first in every schedule because of
program order, issue and *other* rings. The gates hold as long as those rings are right,
and the first failure of a schedule is in one ring: before it all gates held. So a
program fails if and only if one of its projections does. Cells that no barrier of a
ring announces are a projection of their own.
"""

from __future__ import annotations

from dataclasses import replace

from fp4ref.evidence.protocol.bits import mask_of, steps_of
from fp4ref.evidence.protocol.execution import Reference
from fp4ref.evidence.protocol.order import Order, completion, phase_of, reference
from fp4ref.evidence.protocol.program import EXIT, Program, Step
from fp4ref.evidence.protocol.schedules import MOST_STATES, Search, search

REST = "other accesses"
"""Name of the projection without barriers."""


def search_rings(
    program: Program, *, most_states: int = MOST_STATES
) -> dict[str, Search]:
    """Search one ring at a time.

    A program whose first schedule breaks a rule is not projected: that schedule is the
    result, under the ring's name.
    """
    first = reference(program)
    if first.finding is not None and first.finding.failure != "deadlock":
        ring = program.barriers[program.steps[first.order[-1]].barrier].ring
        path = tuple(first.order)
        return {ring: Search(len(path), 0, None, first.finding, path)}
    return {
        ring: search(project(program, ring, first), most_states=most_states)
        for ring in rings(program)
    }


def rings(program: Program) -> list[str]:
    """Name the rings, in the order of their barriers, and last the rest."""
    return [*dict.fromkeys(barrier.ring for barrier in program.barriers), REST]


def project(program: Program, ring: str, first: Reference | None = None) -> Program:
    """Return one ring's program.

    Parameters
    ----------
    first
        The program's reference, if it is known. If it ends in a deadlock, steps behind
        a wait of another ring that never passes are left out: they never come.
    """
    first = first or reference(program)
    gates = _Gates(program, first, ring)
    cells = _cells(program, ring)
    kept = [
        number
        for number, step in enumerate(program.steps)
        if gates.comes[number]
        and (_is_of(program, step, ring) or cells & {*step.reads, *step.writes})
    ]
    place = {number: i for i, number in enumerate(kept)}
    mask = mask_of(kept)
    steps = []
    for number in kept:
        step = _projected(program, number, ring, cells, place)
        after = tuple(place[n] for n in gates.of(number, mask))
        steps.append(replace(step, after=after))
    return Program(
        program.barriers,
        program.cells,
        steps,
        program.overlaps,
        program.unmodelled,
        f"{program.name} {ring}".strip(),
    )


class _Gates:
    """What comes before each step without the help of one ring.

    Attributes
    ----------
    comes
        Whether a step comes at all: not behind another ring's wait that never passes.
    """

    def __init__(self, program: Program, first: Reference, ring: str) -> None:
        order = Order.of(program, first, ring)
        self.past = order.past
        self.comes = [True] * len(program.steps)
        self.rank = {number: i for i, number in enumerate(first.order)}
        last: dict[str, int] = {}
        for number, step in enumerate(program.steps):
            if number not in self.rank:
                self._add(program, first, ring, number, last.get(step.actor, -1))
            last[step.actor] = number

    def _add(
        self, program: Program, first: Reference, ring: str, number: int, before: int
    ) -> None:
        """Find the gates of a step that the reference did not reach."""
        step = program.steps[number]
        earlier = [n for n in (before, *step.after) if n >= 0]
        self.comes[number] = all(self.comes[n] for n in earlier)
        mask = 1 << number
        for each in earlier:
            mask |= self.past[each]
        if step.kind == "wait" and program.barriers[step.barrier].ring != ring:
            phase = phase_of(program, first, number)
            if phase == -2 or first.completed[step.barrier] <= phase:
                self.comes[number] = False
            mask |= completion(program, first, self.past, number)
        self.past[number] = mask

    def of(self, number: int, kept: int) -> list[int]:
        """Return the last of the kept steps that come before a step."""
        before = self.past[number] & kept & ~(1 << number)
        end = len(self.rank)
        ranked = sorted(steps_of(before), key=lambda n: self.rank.get(n, end + n))
        found = []
        for earlier in reversed(ranked):
            if before >> earlier & 1:
                found.append(earlier)
                before &= ~self.past[earlier]
        return found


def _is_of(program: Program, step: Step, ring: str) -> bool:
    return step.barrier >= 0 and program.barriers[step.barrier].ring == ring


def _cells(program: Program, ring: str) -> set[int]:
    """Return the cells that a ring announces, and those that share bytes with them."""
    owner: dict[int, str] = {}
    for step in program.steps:
        if step.barrier >= 0:
            for cell in (*step.writes, *step.reads):
                if program.cells[cell] == EXIT:
                    continue
                owner.setdefault(cell, program.barriers[step.barrier].ring)
    mine = {c for c in range(len(program.cells)) if owner.get(c, REST) == ring}
    return {touched for cell in mine for touched in program.touched(cell)}


def _projected(
    program: Program, number: int, ring: str, cells: set[int], place: dict[int, int]
) -> Step:
    """Return a step without what belongs to other rings."""
    step = program.steps[number]
    reads = tuple(c for c in step.reads if c in cells)
    writes = tuple(c for c in step.writes if c in cells)
    step = replace(step, reads=reads, writes=writes)
    if not _is_of(program, step, ring):
        return replace(
            step, kind="access", barrier=-1, arrivals=0, tx_bytes=0, peek=-1, arrival=-1
        )
    if step.arrival >= 0:
        return replace(step, arrival=place[step.arrival])
    if step.kind in ("wait", "peek"):
        peek = place.get(step.peek, -1)
        return replace(step, peek=peek, generation=program.generations[number])
    return step
