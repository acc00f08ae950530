"""execution: one schedule of a program, step by step, and what is wrong with it.

Barriers count as the machine's do (`fp4ref.hardware.mbarrier_unit`). The first schedule
is the reference: as a trace has it. It says in which generation each
arrival counts and which access comes first; a schedule that has it another way is
faulty, because then two schedules give different results.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush

from fp4ref.evidence.protocol.bits import first_step
from fp4ref.evidence.protocol.books import (
    bytes_left,
    deadlock,
    early,
    over_arrival,
    overrun,
    premature,
    race,
    stale,
)
from fp4ref.evidence.protocol.finding import Finding
from fp4ref.evidence.protocol.program import Program, Step


@dataclass
class Reference:
    """The first schedule of a program.

    Attributes
    ----------
    order
        Steps as they were executed.
    generation
        For each count and each wait of a named barrier its phase.
    counted
        Steps that count in each phase, by (barrier, generation).
    before
        For each step the earlier accesses that conflict with its own, as a bit mask.
    completed
        Phases that each barrier completed.
    finding
        What went wrong in it.
    """

    order: list[int]
    generation: list[int]
    counted: dict[tuple[int, int], int] = field(default_factory=dict)
    before: list[int] = field(default_factory=list)
    completed: list[int] = field(default_factory=list)
    finding: Finding | None = None


class Execution:
    """A state of a program, and the steps that lead on.

    Attributes
    ----------
    position
        Steps that each actor has done.
    done, answered
        Bit masks: steps that are done, and peeks that said yes.
    completed, pending, tx
        Of each barrier: phases, arrivals that are due, and the tx-count.
    trail
        Steps of this execution, in order.
    counted_in
        Of the reference: the phase in which each step has counted.
    """

    __slots__ = (
        "answered",
        "completed",
        "counted_in",
        "done",
        "pending",
        "position",
        "program",
        "reference",
        "trail",
        "tx",
    )

    def __init__(self, program: Program, reference: Reference | None = None) -> None:
        self.program, self.reference = program, reference
        self.position = [0] * len(program.actors)
        self.done = self.answered = 0
        self.completed = [0] * len(program.barriers)
        self.pending = [barrier.count for barrier in program.barriers]
        self.tx = [0] * len(program.barriers)
        self.trail: list[int] = []
        self.counted_in: dict[int, int] = {}

    def copy(self) -> Execution:
        """Return another execution that stands where this one stands."""
        twin = Execution.__new__(Execution)
        twin.program, twin.reference = self.program, self.reference
        twin.done, twin.answered = self.done, self.answered
        twin.position, twin.completed = self.position[:], self.completed[:]
        twin.pending, twin.tx, twin.trail = self.pending[:], self.tx[:], []
        twin.counted_in = self.counted_in
        return twin

    def next_step(self, actor: int) -> int:
        """Step that an actor could do now; -1 if it is blocked or at its end."""
        steps, at = self.program.actors[actor], self.position[actor]
        if at == len(steps):
            return -1
        number = steps[at]
        step = self.program.steps[number]
        for earlier in step.after:
            if not self.done >> earlier & 1:
                return -1
        if step.kind == "wait" and not self.passes(step):
            return -1
        return number

    def passes(self, step: Step) -> bool:
        """Whether a wait would pass, or a peek could say yes."""
        if step.arrival >= 0:
            return self.completed[step.barrier] > self._round(step)
        if step.peek >= 0 and self.answered >> step.peek & 1:
            return True
        return self.completed[step.barrier] & 1 != step.parity

    def _round(self, step: Step) -> int:
        """Round in which a wait on a named barrier has arrived."""
        if self.reference:
            return self.reference.generation[step.arrival]
        return self.counted_in.get(step.arrival, 0)

    def enabled(self) -> list[int]:
        """Steps that could come next, one an actor at most."""
        steps = (self.next_step(actor) for actor in range(len(self.position)))
        return [number for number in steps if number >= 0]

    def execute(self, actor: int, answer: bool = False) -> Finding | None:
        """Do the next step of an actor; a peek answers `answer`.

        Returns
        -------
        Finding or None
            What is wrong with doing this step now. The step is done in any case.
        """
        number = self.program.actors[actor][self.position[actor]]
        step = self.program.steps[number]
        finding = self._race(number) if step.reads or step.writes else None
        if step.kind == "count":
            finding = self._count(number, step) or finding
        elif step.kind == "wait" or (step.kind == "peek" and answer):
            finding = self._pass(number, step) or finding
        if answer:
            self.answered |= 1 << number
        elif step.peek >= 0:
            self.answered &= ~(1 << step.peek)
        self.done |= 1 << number
        self.position[actor] += 1
        self.trail.append(number)
        return finding

    def _race(self, number: int) -> Finding | None:
        """Find an access that should have come before this one and has not."""
        if self.reference is None:
            return None
        missing = self.reference.before[number] & ~self.done
        return race(self.program, number, first_step(missing)) if missing else None

    def _pass(self, number: int, step: Step) -> Finding | None:
        """Find a wait or a yes that is for another phase than the current one."""
        if step.arrival >= 0 or (step.peek >= 0 and self.answered >> step.peek & 1):
            return None
        wanted = self.program.generations[number] + 1
        seen = self.completed[step.barrier]
        return None if seen == wanted else premature(self.program, number, seen)

    def _count(self, number: int, step: Step) -> Finding | None:
        """Count on a barrier, and end its phase if nothing is left."""
        if not step.arrivals and not step.tx_bytes:
            return None
        at, phase = step.barrier, self.completed[step.barrier]
        if step.arrivals > self.pending[at]:
            return over_arrival(self.program, number, phase, self.pending[at])
        finding = None
        if self.reference is None:
            self.counted_in[number] = phase
        else:
            meant = self.reference.generation[number]
            if meant != phase and meant >= 0:
                finding = stale(self.program, number, phase, meant)
        self.tx[at] += step.tx_bytes
        self.pending[at] -= step.arrivals
        if self.pending[at] == 0 and self.tx[at] == 0:
            self.completed[at] += 1
            self.pending[at] = self.program.barriers[at].count
            finding = finding or self._completion(number, at, phase)
        return finding

    def _completion(self, number: int, at: int, phase: int) -> Finding | None:
        """Find what a completed phase left out, or whom it overran."""
        if self.reference:
            meant = self.reference.counted.get((at, phase), 0)
            missing = meant & ~(self.done | 1 << number)
            if missing:
                return early(self.program, number, phase, first_step(missing))
        for wait in self.program.waits.get((at, phase - 1), ()):
            peek = self.program.steps[wait].peek
            seen = peek >= 0 and self.answered >> peek & 1
            if not self.done >> wait & 1 and not seen:
                return overrun(self.program, number, phase, wait)
        return None

    def greedy(self, without: int = -1) -> Finding | None:
        """Go on until all are at their end or blocked; peeks say no.

        Of the steps that may come, the one of lowest number comes: what was recorded
        first. A blocked actor is woken by what it waits for.

        Parameters
        ----------
        without
            A step that is not done, and so none of its actor after it.

        Returns
        -------
        Finding or None
            What went wrong, at the last step of `trail`.
        """
        program = self.program
        heap = [(number, program.actor_of[number]) for number in self.unfinished()]
        heapify(heap)
        parked: dict[tuple[str, int], list[tuple[int, int]]] = {}
        while heap:
            number, actor = heappop(heap)
            step = program.steps[number]
            late = [each for each in step.after if not self.done >> each & 1]
            if late:
                parked.setdefault(("step", late[0]), []).append((number, actor))
            elif step.kind == "wait" and not self.passes(step):
                parked.setdefault(("phase", step.barrier), []).append((number, actor))
            elif number != without:
                if finding := self.execute(actor):
                    return finding
                woken = parked.pop(("step", number), [])
                if step.kind == "count":
                    woken += parked.pop(("phase", step.barrier), [])
                steps, at = program.actors[actor], self.position[actor]
                if at < len(steps):
                    woken.append((steps[at], actor))
                for each in woken:
                    heappush(heap, each)
        return None

    @property
    def finished(self) -> bool:
        """Whether every actor is at its end."""
        actors = self.program.actors
        return all(
            at == len(steps) for at, steps in zip(self.position, actors, strict=True)
        )

    def unfinished(self) -> list[int]:
        """Step at which each actor stands that is not at its end."""
        pairs = zip(self.program.actors, self.position, strict=True)
        return [steps[at] for steps, at in pairs if at < len(steps)]

    def end(self) -> Finding | None:
        """Find what is wrong with an end state: a deadlock, or bytes left over."""
        if not self.finished:
            return deadlock(
                self.program, self.unfinished(), self.completed, self.pending, self.tx
            )
        for at, tx in enumerate(self.tx):
            if tx:
                return bytes_left(self.program, at, self.completed[at], tx)
        return None

    def key(self) -> tuple[int, int, tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        """Return what tells this state from others."""
        return (
            self.done,
            self.answered,
            tuple(self.completed),
            tuple(self.pending),
            tuple(self.tx),
        )
