"""schedules: every schedule of a program, each class of equal ones once.

Two schedules are *distinguishable* if accesses of the same bytes, the last arrival of
an mbarrier's phase, or the answer of a peek come in another order.

With the reduction a step is taken alone if it is a *persistent set*: the rest of the
program, run as far as it goes without that step, reaches nothing that depends on it.
That run is made at every state, and what goes wrong in it is reported. What is left to
decide is who arrives last in each phase and what each peek answers: a decision is a
promise, and the others go first. States that meet are searched once, so the number of
classes is counted without walking through each.

Without the reduction every state is visited, in the order of its distance from the
start: the first failure has the shortest schedule that there is.
"""

from __future__ import annotations

from dataclasses import dataclass

from fp4ref.evidence.protocol.bits import steps_of
from fp4ref.evidence.protocol.execution import Execution, Reference
from fp4ref.evidence.protocol.finding import Finding
from fp4ref.evidence.protocol.order import reference
from fp4ref.evidence.protocol.program import Program

MOST_STATES = 300_000
"""States that are visited unless more are asked for."""


class TooLarge(Exception):
    """The search has visited as many states as it may."""


@dataclass(frozen=True)
class Search:
    """What a search has seen.

    Attributes
    ----------
    states
        States visited.
    interleavings
        Classes of distinguishable schedules; 0 after a failure.
    schedules
        All schedules, one by one; counted without the reduction only.
    finding
        The failure, with the schedule of its discovery.
    path
        That schedule's steps.
    complete
        False if the limit of states was reached.
    """

    states: int
    interleavings: int
    schedules: int | None
    finding: Finding | None
    path: tuple[int, ...] = ()
    complete: bool = True


def search(
    program: Program, *, reduction: bool = True, most_states: int = MOST_STATES
) -> Search:
    """Visit every state that is needed to tell whether a schedule fails."""
    first = reference(program)
    if first.finding is not None and reduction:
        return Search(len(first.order), 0, None, first.finding, tuple(first.order))
    if not reduction:
        return _Full(program, first, most_states).search()
    return _Reduced(program, first, most_states).search()


class _Failed(Exception):
    """A schedule fails; carries the finding and the steps."""

    def __init__(self, finding: Finding, path: tuple[int, ...]) -> None:
        super().__init__()
        self.finding, self.path = finding, path


@dataclass(frozen=True, slots=True)
class _Promises:
    """What was decided and has not happened yet, as bit masks of steps.

    Attributes
    ----------
    last
        Steps that are to be the last of their phase.
    rest
        All other steps of those phases.
    yes
        Peeks that are to say yes.
    """

    last: int = 0
    rest: int = 0
    yes: int = 0


class _Reduced:
    """The search with persistent sets."""

    def __init__(self, program: Program, first: Reference, most: int) -> None:
        self.program, self.first, self.most = program, first, most
        self.phase: dict[int, tuple[int, int]] = {}
        self.counted = {
            key: mask
            for key, mask in first.counted.items()
            if not program.barriers[key[0]].named and key[1] < first.completed[key[0]]
        }
        for key, mask in self.counted.items():
            for number in steps_of(mask):
                self.phase[number] = key
        self.classes: dict[tuple[int, ...], int] = {}
        self.delayed: set[tuple[int, int]] = set()
        self.states = 0

    def search(self) -> Search:
        """Count the classes, or find a failure."""
        try:
            found = self._classes(Execution(self.program, self.first), _Promises(), ())
        except _Failed as failed:
            return Search(self.states, 0, None, failed.finding, failed.path)
        except TooLarge:
            return Search(self.states, 0, None, None, complete=False)
        return Search(self.states, found, None, None)

    def _classes(
        self, run: Execution, promises: _Promises, path: tuple[int, ...]
    ) -> int:
        """Count the classes that go on from a state."""
        decision = self._advance(run, promises, path)
        path = (*path, *run.trail)
        promises = self._kept(run, promises)
        if decision is None:
            return self._at_end(run, promises, path)
        key = run.done, run.answered, promises.last, promises.yes
        if key not in self.classes:
            total = 0
            for answer, promised in self._answers(run, decision, promises):
                branch = run.copy()
                if answer is not None:
                    self._do(branch, decision, path, answer)
                total += self._classes(branch, promised, path)
            self.classes[key] = total
        return self.classes[key]

    def _kept(self, run: Execution, promises: _Promises) -> _Promises:
        """Return the promises that are still to be kept."""
        last, rest = promises.last & ~run.done, 0
        for number in steps_of(last):
            rest |= self.counted[self.phase[number]] & ~(1 << number)
        return _Promises(last, rest, promises.yes & ~run.done)

    def _at_end(
        self, run: Execution, promises: _Promises, path: tuple[int, ...]
    ) -> int:
        """Count one if all is done; a promise that cannot be kept is no schedule."""
        if run.finished:
            if finding := run.end():
                raise _Failed(finding, path)
            return 1
        if not promises.last and not promises.yes:
            finding = run.end()
            assert finding is not None
            raise _Failed(finding, path)
        return 0

    def _advance(
        self, run: Execution, promises: _Promises, path: tuple[int, ...]
    ) -> int | None:
        """Take all steps that decide nothing; return one that does, if any is left."""
        moved, decision = True, None
        while moved:
            moved, decision = False, None
            for actor in range(len(run.position)):
                number = run.next_step(actor)
                if number < 0:
                    continue
                ready = self._ready(run, number, promises)
                if ready is None:
                    decision = number if decision is None else min(decision, number)
                elif ready:
                    self._delay(run, number, path)
                    self._do(run, number, path, bool(promises.yes >> number & 1))
                    moved = True
        return decision

    def _ready(self, run: Execution, number: int, promises: _Promises) -> bool | None:
        """Whether a step may be taken; None if something is to be decided first."""
        step = self.program.steps[number]
        if step.kind == "peek":
            if promises.yes >> number & 1:
                return run.completed[step.barrier] > self.program.generations[number]
            return None
        key = self.phase.get(number)
        if key is None:
            return True
        if promises.last >> number & 1:
            return not self.counted[key] & ~(run.done | 1 << number)
        if promises.rest >> number & 1 or self.counted[key] == 1 << number:
            return True
        return None

    def _answers(
        self, run: Execution, number: int, promises: _Promises
    ) -> list[tuple[bool | None, _Promises]]:
        """Return the ways to decide: a peek's answer, or who arrives last."""
        if self.program.steps[number].kind == "peek":
            yes = _Promises(promises.last, promises.rest, promises.yes | 1 << number)
            return [(False, promises), (None, yes)]
        counted = self.counted[self.phase[number]]
        return [
            (
                None,
                _Promises(
                    promises.last | 1 << last,
                    promises.rest | counted & ~(1 << last),
                    promises.yes,
                ),
            )
            for last in steps_of(counted & ~run.done)
        ]

    def _do(
        self, run: Execution, number: int, path: tuple[int, ...], answer: bool
    ) -> None:
        actor = self.program.actor_of[number]
        self.states += 1
        if self.states > self.most:
            raise TooLarge
        if finding := run.execute(actor, answer):
            raise _Failed(finding, (*path, *run.trail))

    def _delay(self, run: Execution, number: int, path: tuple[int, ...]) -> None:
        """Check that a step is a persistent set: run all the rest without it.

        A peek's yes only lets its own actor pass a wait that has become possible, so
        the run in which it says no goes as far.
        """
        if (run.done, number) in self.delayed:
            return
        self.delayed.add((run.done, number))
        rest = run.copy()
        if finding := rest.greedy(without=number):
            raise _Failed(finding, (*path, *run.trail, *rest.trail))


class _Way:
    """A state on the way, with the schedules that lead to it.

    Attributes
    ----------
    schedules
        How many.
    marks
        What tells them apart, as bit masks: peeks that said yes, last arrivals.
    before, number
        One way to it: the state before, and the step.
    """

    __slots__ = ("before", "marks", "number", "run", "schedules")

    def __init__(self, run: Execution, before: _Way | None, number: int) -> None:
        self.run, self.before, self.number = run, before, number
        self.schedules = 0
        self.marks: set[int] = set()

    def path(self) -> tuple[int, ...]:
        """Return the steps of one schedule that leads here."""
        steps, way = [], self
        while way.before is not None:
            steps.append(way.number)
            way = way.before
        return tuple(reversed(steps))


class _Full:
    """The search of every state."""

    def __init__(self, program: Program, first: Reference, most: int) -> None:
        self.program, self.most = program, most
        # A reference that fails says nothing about order.
        self.first = None if first.finding else first

    def search(self) -> Search:
        """Go through the states by distance from the start."""
        start = _Way(Execution(self.program, self.first), None, -1)
        start.schedules, start.marks = 1, {0}
        layer: dict[object, _Way] = {start.run.key(): start}
        states, ends = 0, []
        try:
            while layer:
                states += len(layer)
                if states > self.most:
                    return Search(states, 0, None, None, complete=False)
                following: dict[object, _Way] = {}
                for way in layer.values():
                    if not self._follow(way, following):
                        ends.append(way)
                layer = following
        except _Failed as failed:
            return Search(states, 0, None, failed.finding, failed.path)
        marks: set[int] = set().union(*(way.marks for way in ends))
        return Search(states, len(marks), sum(way.schedules for way in ends), None)

    def _follow(self, way: _Way, following: dict[object, _Way]) -> bool:
        """Add the states one step on; False if there is none."""
        enabled = way.run.enabled()
        if not enabled and (finding := way.run.end()):
            raise _Failed(finding, way.path())
        for number in enabled:
            step = self.program.steps[number]
            asks = step.kind == "peek" and way.run.passes(step)
            for answer in (False, True) if asks else (False,):
                run = way.run.copy()
                run.counted_in = dict(way.run.counted_in)
                taken = _Way(run, way, number)
                if finding := run.execute(self.program.actor_of[number], answer):
                    raise _Failed(finding, taken.path())
                reached = following.setdefault(run.key(), taken)
                mark = _mark(way.run, run, number, answer)
                reached.schedules += way.schedules
                reached.marks.update(each | mark for each in way.marks)
        return bool(enabled)


def _mark(before: Execution, after: Execution, number: int, answer: bool) -> int:
    """Return the bit by which schedules are told apart, if this step has one."""
    step = before.program.steps[number]
    if step.kind == "peek":
        return 1 << number if answer else 0
    if step.kind != "count" or before.program.barriers[step.barrier].named:
        return 0
    ended = after.completed[step.barrier] > before.completed[step.barrier]
    return 1 << number if ended else 0
