"""every_schedule: the schedules of a protocol program, one by one, by brute force.

It shares no rule with the search: a program is faulty if a phase takes too many
arrivals, if nobody can go on, if bytes are left over, if a wait passes at another phase
than its own, or if two schedules differ in what a step sees: the phase in which it
counts, or the conflicting accesses before it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from fp4ref.evidence.protocol.program import Program, Step

MOST = 60_000
Books = tuple[tuple[int, int, int], ...]
Kind = frozenset[tuple[int, int]]
"""What tells a schedule from others: peeks that said yes, and last arrivals."""


class TooMany(Exception):
    """The program has more states than one wants to try."""


class State(NamedTuple):
    """Where each actor stands, each barrier's (phases, pending, tx-count), and more.

    `yes` are peeks whose yes has not been used; `rounds` says in which round each
    arrival on a named barrier was.
    """

    at: tuple[int, ...]
    books: Books
    yes: frozenset[int]
    rounds: tuple[tuple[int, int], ...]


@dataclass
class Tried:
    """What all schedules together have shown."""

    faulty: str = ""
    states: int = 0
    schedules: int = 0
    kinds: set[Kind] = field(default_factory=set)


class Faulty(Exception):
    """Some schedule fails."""


def try_all(program: Program, most: int = MOST) -> Tried:
    """Go through all states, and through all ways between them."""
    tried, brute = Tried(), _Brute(program)
    books = tuple((0, barrier.count, 0) for barrier in program.barriers)
    start = State((0,) * len(brute.actors), books, frozenset(), ())
    level: dict[State, tuple[int, set[Kind]]] = {start: (1, {frozenset()})}
    try:
        while level:
            tried.states += len(level)
            if tried.states > most:
                raise TooMany
            following: dict[State, tuple[int, set[Kind]]] = {}
            for state, (ways, kinds) in level.items():
                steps = list(brute.steps(state))
                for then, mark in steps:
                    more, others = following.setdefault(then, (0, set()))
                    others |= {kind | mark for kind in kinds}
                    following[then] = (more + ways, others)
                if not steps:
                    brute.check_end(state)
                    tried.schedules += ways
                    tried.kinds |= kinds
            level = following
    except Faulty as faulty:
        tried.faulty = str(faulty)
    return tried


class _Brute:
    """The rules, and what each step has seen so far."""

    def __init__(self, program: Program) -> None:
        self.program = program
        lists: dict[str, list[int]] = {}
        for n, step in enumerate(program.steps):
            lists.setdefault(step.actor, []).append(n)
        self.actors = list(lists.values())
        self.meant = _meant(program)
        self.conflicts = _conflicts(program)
        self.observed: dict[int, object] = {}

    def done(self, state: State) -> set[int]:
        pairs = zip(self.actors, state.at, strict=True)
        return {n for steps, i in pairs for n in steps[:i]}

    def check_end(self, state: State) -> None:
        if len(self.done(state)) < len(self.program.steps):
            raise Faulty("deadlock")
        if any(book[2] for book in state.books):
            raise Faulty("bytes left")

    def steps(self, state: State):
        """Yield each next state, with its mark."""
        done = self.done(state)
        for actor, steps in enumerate(self.actors):
            if state.at[actor] == len(steps):
                continue
            n = steps[state.at[actor]]
            step = self.program.steps[n]
            if set(step.after) <= done:
                for answer in self.answers(step, state):
                    yield self.do(actor, n, step, answer, state, done)

    def answers(self, step: Step, state: State) -> list[bool]:
        """Ways to do a step: none if it blocks, two for a peek that may say yes."""
        if step.kind not in ("wait", "peek"):
            return [False]
        completed = state.books[step.barrier][0]
        if step.arrival >= 0:
            now = dict(state.rounds).get(step.arrival, 0)
            return [False] if completed > now else []
        over = completed % 2 != step.parity
        if step.kind == "peek":
            return [False, True] if over else [False]
        return [False] if over or step.peek in state.yes else []

    def do(
        self,
        actor: int,
        n: int,
        step: Step,
        answer: bool,
        state: State,
        done: set[int],
    ) -> tuple[State, Kind]:
        books, rounds, mark, seen = state.books, state.rounds, frozenset(), None
        if step.kind == "count" and (step.arrivals or step.tx_bytes):
            seen = books[step.barrier][0]
            books, mark = self.count(n, step, books)
            if self.program.barriers[step.barrier].named:
                rounds = tuple(sorted((*rounds, (n, seen))))
        elif step.kind in ("wait", "peek") and step.arrival < 0:
            looks = answer if step.kind == "peek" else step.peek not in state.yes
            if looks and books[step.barrier][0] != self.meant[n] + 1:
                raise Faulty("another phase")
            mark = frozenset([(n, 1)]) if answer else mark
        value = seen, frozenset(self.conflicts[n] & done)
        if step.kind != "peek" and self.observed.setdefault(n, value) != value:
            raise Faulty(f"step {n} sees two things")
        at = (*state.at[:actor], state.at[actor] + 1, *state.at[actor + 1 :])
        yes = (state.yes | {n} if answer else state.yes) - {step.peek}
        return State(at, books, frozenset(yes), rounds), mark

    def count(self, n: int, step: Step, books: Books) -> tuple[Books, Kind]:
        completed, pending, tx = books[step.barrier]
        if step.arrivals > pending:
            raise Faulty("too many arrivals")
        pending, tx = pending - step.arrivals, tx + step.tx_bytes
        barrier, mark = self.program.barriers[step.barrier], frozenset()
        if pending == 0 and tx == 0:
            completed, pending = completed + 1, barrier.count
            mark = mark if barrier.named else frozenset([(n, 0)])
        at = step.barrier
        return (*books[:at], (completed, pending, tx), *books[at + 1 :]), mark


def _meant(program: Program) -> dict[int, int]:
    """Say which phase each wait is for, from its actor's own waits."""
    meant: dict[int, int] = {}
    last: dict[tuple[str, int], int] = {}
    for n, step in enumerate(program.steps):
        if step.kind in ("wait", "peek") and step.arrival < 0:
            low = last.get((step.actor, step.barrier), -1)
            phase = low if low % 2 == step.parity % 2 else low + 1
            if step.generation is not None:
                phase = step.generation
            meant[n] = phase
            if step.kind == "wait":
                last[step.actor, step.barrier] = max(low, phase)
    return meant


def _conflicts(program: Program) -> list[set[int]]:
    """Return for each step the others that touch its bytes, one of them writing."""

    def near(cells) -> set[int]:
        return {t for c in cells for t in (c, *program.overlaps.get(c, ()))}

    found = []
    for step in program.steps:
        reads, writes = near(step.reads), near(step.writes)
        found.append(
            {
                n
                for n, other in enumerate(program.steps)
                if other is not step
                and (writes & {*other.reads, *other.writes} or reads & {*other.writes})
            }
        )
    return found
