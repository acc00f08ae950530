"""every_schedule: the schedules of a protocol program, one by one, by brute force.

It shares no rule with the search: a program is faulty if a phase takes too many
arrivals, if nobody can go on, if bytes are left over, if a wait passes at another phase
than its own, or if two schedules differ in what a step sees: the phase in which it
counts, or the conflicting accesses before it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from fp4ref.evidence.protocol.program import Program

MOST = 60_000


class TooMany(Exception):
    """The program has more states than one wants to try."""


@dataclass
class Tried:
    """What all schedules together have shown."""

    faulty: str = ""
    states: int = 0
    schedules: int = 0
    kinds: set[frozenset[tuple[int, int]]] = field(default_factory=set)


def try_all(program: Program, most: int = MOST) -> Tried:
    """Go through all states, and through all ways between them."""
    tried = Tried()
    lists: dict[str, list[int]] = {}
    for n, step in enumerate(program.steps):
        lists.setdefault(step.actor, []).append(n)
    actors = list(lists.values())
    meant = _meant(program)
    conflicts = _conflicts(program)
    observed: dict[int, object] = {}
    b0 = tuple((0, b.count, 0) for b in program.barriers)
    level = {((0,) * len(actors), b0, frozenset(), ()): (1, {frozenset()})}
    while level and not tried.faulty:
        tried.states += len(level)
        if tried.states > most:
            raise TooMany
        following: dict = {}
        for (at, books, yes, rounds), (ways, kinds) in level.items():
            done = {n for steps, i in zip(actors, at, strict=True) for n in steps[:i]}
            moved = False
            for actor, steps in enumerate(actors):
                if at[actor] == len(steps):
                    continue
                n = steps[at[actor]]
                step = program.steps[n]
                if not set(step.after) <= done:
                    continue
                for answer in _answers(step, n, books, yes, dict(rounds)):
                    moved = True
                    new, mark, seen, wrong = _do(
                        program, step, n, books, answer, yes, meant
                    )
                    if wrong:
                        tried.faulty = wrong
                        return tried
                    value = (seen, frozenset(conflicts[n] & done))
                    if step.kind != "peek" and observed.setdefault(n, value) != value:
                        tried.faulty = f"step {n} sees two things"
                        return tried
                    then_yes = (yes | {n} if answer else yes) - {step.peek}
                    then_rounds = rounds
                    if step.kind == "count" and program.barriers[step.barrier].named:
                        then_rounds = (*rounds, (n, books[step.barrier][0]))
                    then_at = (*at[:actor], at[actor] + 1, *at[actor + 1 :])
                    key = (
                        then_at,
                        new,
                        frozenset(then_yes),
                        tuple(sorted(then_rounds)),
                    )
                    more, others = following.setdefault(key, (0, set()))
                    others |= {k | mark for k in kinds}
                    following[key] = (more + ways, others)
            if not moved:
                if len(done) < len(program.steps):
                    tried.faulty = "deadlock"
                elif any(book[2] for book in books):
                    tried.faulty = "bytes left"
                tried.schedules += ways
                tried.kinds |= kinds
        level = following
    return tried


def _meant(program):
    """Say which phase each wait is for, from its actor's own waits."""
    meant, last = {}, {}
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


def _conflicts(program):
    def bytes_of(cells):
        return {t for c in cells for t in (c, *program.overlaps.get(c, ()))}

    found = []
    for step in program.steps:
        reads, writes = bytes_of(step.reads), bytes_of(step.writes)
        found.append(
            {
                n
                for n, other in enumerate(program.steps)
                if other is not step
                and (writes & {*other.reads, *other.writes} or reads & {*other.writes})
            }
        )
    return found


def _answers(step, n, books, yes, rounds):
    if step.kind not in ("wait", "peek"):
        return [False]
    completed = books[step.barrier][0]
    if step.arrival >= 0:
        return [False] if completed > rounds[step.arrival] else []
    over = completed % 2 != step.parity
    if step.kind == "peek":
        return [False, True] if over else [False]
    return [False] if over or step.peek in yes else []


def _do(program, step, n, books, answer, yes, meant):
    """Return the books after a step, its mark, what it sees and what is wrong."""
    if step.kind in ("wait", "peek") and step.arrival < 0:
        completed = books[step.barrier][0]
        looks = answer if step.kind == "peek" else step.peek not in yes
        wrong = "another phase" if looks and completed != meant[n] + 1 else ""
        mark = frozenset([(n, 1)]) if answer else frozenset()
        return books, mark, None, wrong
    if step.kind != "count" or not (step.arrivals or step.tx_bytes):
        return books, frozenset(), None, ""
    completed, pending, tx = books[step.barrier]
    seen = completed
    if step.arrivals > pending:
        return books, frozenset(), None, "too many arrivals"
    pending, tx = pending - step.arrivals, tx + step.tx_bytes
    mark = frozenset()
    barrier = program.barriers[step.barrier]
    if pending == 0 and tx == 0:
        completed, pending = completed + 1, barrier.count
        if not barrier.named:
            mark = frozenset([(n, 0)])
    at = step.barrier
    new = (*books[:at], (completed, pending, tx), *books[at + 1 :])
    return new, mark, seen, ""
