"""order: what happens before what in every schedule of a program.

The edges are program order, issue before operation, and a complete phase before each
wait for it. If the books of every phase are right (`fp4ref.evidence.protocol.
counting`), these are all edges that there are.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from fp4ref.evidence.protocol.execution import Execution, Reference
from fp4ref.evidence.protocol.program import Program


def reference(program: Program) -> Reference:
    """Run the first schedule: of the steps that may come, the one of lowest number."""
    run = Execution(program)
    finding = run.greedy() or run.end()
    generation = [-2] * len(program.steps)
    counted: dict[tuple[int, int], int] = {}
    for number, phase in run.counted_in.items():
        generation[number] = phase
        key = program.steps[number].barrier, phase
        counted[key] = counted.get(key, 0) | 1 << number
    for number in run.trail:
        step = program.steps[number]
        if step.arrival >= 0:
            generation[number] = generation[step.arrival]
    return Reference(
        run.trail,
        generation,
        counted,
        _conflicts(program, run.trail),
        run.completed,
        finding,
    )


def _conflicts(program: Program, order: Iterable[int]) -> list[int]:
    """Return for each step the earlier accesses that it must come after, as a mask."""
    before = [0] * len(program.steps)
    written = [0] * len(program.cells)
    used = [0] * len(program.cells)
    for number in order:
        step = program.steps[number]
        for cell in step.reads:
            for touched in program.touched(cell):
                before[number] |= written[touched]
        for cell in step.writes:
            for touched in program.touched(cell):
                before[number] |= written[touched] | used[touched]
        for cell in step.writes:
            written[cell], used[cell] = 1 << number, 0
        for cell in step.reads:
            used[cell] |= 1 << number
        before[number] &= ~(1 << number)
    return before


@dataclass(frozen=True)
class Order:
    """Happens-before of the steps that the reference did.

    Attributes
    ----------
    past
        For each step itself and all that come before it, as a bit mask.
    """

    program: Program
    reference: Reference
    past: list[int]

    @classmethod
    def of(
        cls, program: Program, reference: Reference, without_ring: str | None = None
    ) -> Order:
        """Follow the edges; with `without_ring` those of one ring's waits are left out.

        What the rest of the program orders is then left: the gates of a projection.
        """
        past = [0] * len(program.steps)
        last: dict[str, int] = {}
        for number in reference.order:
            step = program.steps[number]
            mask = 1 << number | last.get(step.actor, 0)
            for earlier in step.after:
                mask |= past[earlier]
            if step.kind == "wait":
                barrier = program.barriers[step.barrier]
                if barrier.ring != without_ring:
                    mask |= completion(program, reference, past, number)
            past[number] = last[step.actor] = mask
        return cls(program, reference, past)

    def ordered(self, first: int, then: int) -> bool:
        """Whether one step comes before another in every schedule."""
        return bool(self.past[then] >> first & 1)


def phase_of(program: Program, reference: Reference, number: int) -> int:
    """Return the generation that a wait or peek is for; -2 if it is not known."""
    if (arrival := program.steps[number].arrival) >= 0:
        return reference.generation[arrival]
    return program.generations[number]


def completion(
    program: Program, reference: Reference, past: list[int], number: int
) -> int:
    """Return the past of the phase that a wait is for."""
    step, mask = program.steps[number], 0
    phase = phase_of(program, reference, number)
    counted = reference.counted.get((step.barrier, phase), 0)
    while counted:
        low = counted & -counted
        mask |= past[low.bit_length() - 1]
        counted ^= low
    return mask
