"""counting: counts and order that prove a protocol right without a search.

The argument is an induction on the steps of any schedule. Suppose all was as in the
reference so far. (1) Every phase has its exact arrivals and bytes, and none of its
steps can come after its end. (2) Everything that counts in the next phase happens after
everything that counts in this one, so nothing counts in the wrong phase. (3) A wait for
a phase happens after the phase before (else the parity deceives it) and before the next
one completes (else it is lapped). (4) Conflicting accesses are ordered. Then the next
step is as in the reference too; the wait with the least past can always pass, so nobody
waits for ever. Each condition is necessary as well: where one fails, the schedule that
does only what must come first shows it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from fp4ref.evidence.protocol import books
from fp4ref.evidence.protocol.bits import first_step, mask_of, steps_of
from fp4ref.evidence.protocol.execution import Execution, Reference
from fp4ref.evidence.protocol.finding import Finding
from fp4ref.evidence.protocol.order import Order, reference
from fp4ref.evidence.protocol.program import Program

MOST_FREE_COUNTS = 16
"""Steps of one phase that expect or complete bytes both ways and are not arrivals."""


Break = tuple[Finding, int, int]
"""What fails, the steps that show it, and the last of them (-1: in their order)."""


class Undecided(Exception):
    """A phase that counting alone does not decide."""


def broken(program: Program, first: Reference | None = None) -> list[Finding]:
    """Return where the certificate breaks; [] if nowhere.

    What is wrong with the books comes before the races that follow from it, then the
    shortest witness first.

    Raises
    ------
    Undecided
        A phase has too many steps that expect and complete bytes in any order.
    """
    first = first or reference(program)
    found = []
    for finding, steps in witnesses(program, first):
        lines = [program.describe(number) for number in steps]
        lines += ["nobody can go on"] if finding.failure == "deadlock" else []
        found.append(finding.with_witness(tuple(lines)))
    return found


def witnesses(program: Program, first: Reference) -> list[tuple[Finding, list[int]]]:
    """Return each failure with the steps of a schedule that shows it.

    They are the steps that must come first, and no other: no schedule shows that
    failure sooner.
    """
    order, found = Order.of(program, first), []
    for finding, needed, last in _stuck(order) if first.finding else _breaks(order):
        steps = [n for n in first.order if needed >> n & 1 and n != last]
        found.append((finding, [*steps, last] if last >= 0 else steps))
    found.sort(key=lambda each: (each[0].failure in ("race", "exit"), len(each[1])))
    return found


def shows(program: Program, first: Reference, steps: list[int]) -> Finding | None:
    """Execute steps in their order; return what goes wrong at the last one."""
    run = Execution(program, first)
    for number in steps:
        actor = program.actor_of[number]
        if run.next_step(actor) != number:
            return None
        asked = program.steps[number].kind == "peek" and number == steps[-1]
        if finding := run.execute(actor, answer=asked):
            return finding
    return run.end()


def _stuck(order: Order) -> Iterator[Break]:
    """Yield what is wrong with the reference itself."""
    first = order.reference
    assert first.finding is not None
    if first.finding.failure in ("deadlock", "bytes"):
        yield first.finding, mask_of(first.order), -1
    else:
        last = first.order[-1]
        at, needed = order.program.steps[last].barrier, order.past[last]
        for phase in (first.completed[at] - 1, first.completed[at]):
            for number in steps_of(first.counted.get((at, phase), 0)):
                needed |= order.past[number]
        yield first.finding, needed, last
    # What would fail earlier in another schedule has a shorter witness.
    yield from _breaks(order)


def _breaks(order: Order) -> Iterator[Break]:
    """Yield each condition that fails, with the steps that its witness needs."""
    program, first = order.program, order.reference
    for (at, phase), counted in first.counted.items():
        yield from _early(order, at, phase, counted)
        before = first.counted.get((at, phase - 1), 0)
        if before:
            yield from _stale(order, phase, counted, before)
    for number in first.order:
        step = program.steps[number]
        if step.kind in ("wait", "peek") and step.arrival < 0:
            yield from _premature(order, number)
        missing = first.before[number] & ~order.past[number]
        if missing:
            yield (
                books.race(program, number, first_step(missing)),
                order.past[number],
                number,
            )
    for waits in program.waits.values():
        for number in waits:
            yield from _lapped(order, number)


def _early(order: Order, at: int, phase: int, counted: int) -> Iterator[Break]:
    """Yield a phase that can end although some of its bytes are not counted."""
    program = order.program
    if order.reference.completed[at] <= phase:
        return
    free = [n for n in steps_of(counted) if not program.steps[n].arrivals]
    if len({program.steps[n].tx_bytes > 0 for n in free}) < 2:
        return
    if len(free) > MOST_FREE_COUNTS:
        raise Undecided(
            f"{program.barriers[at].name} generation {phase}: {len(free)} steps expect "
            f"and complete bytes, and {MOST_FREE_COUNTS} are the most"
        )
    for size in range(len(free), 0, -1):
        for late in combinations(free, size):
            if sum(program.steps[n].tx_bytes for n in late):
                continue
            rest, needed = [n for n in steps_of(counted) if n not in late], 0
            for number in rest:
                needed |= order.past[number]
            if not any(needed >> n & 1 for n in late):
                yield books.early(program, rest[-1], phase, late[0]), needed, -1
                return


def _stale(order: Order, phase: int, counted: int, before: int) -> Iterator[Break]:
    """Yield a step that can count in the phase before its own."""
    for number in steps_of(counted):
        if before & ~order.past[number]:
            finding = books.stale(order.program, number, phase - 1, phase)
            yield finding, order.past[number], number


def _premature(order: Order, number: int) -> Iterator[Break]:
    """Yield a wait that an older phase of its parity lets pass."""
    program, first = order.program, order.reference
    at, phase = program.steps[number].barrier, program.generations[number]
    needed = order.past[number]
    seen = phase - 1
    while seen >= 0:
        last = first.counted.get((at, seen), 0)
        state = needed
        for earlier in steps_of(first.counted.get((at, seen - 1), 0)):
            state |= order.past[earlier]
        if last & ~state and not state & ~needed >> number & 1:
            yield books.premature(program, number, seen), state, number
        seen -= 2


def _lapped(order: Order, number: int) -> Iterator[Break]:
    """Yield a phase that can complete before a waiter for the one before has looked."""
    program, first = order.program, order.reference
    at, phase = program.steps[number].barrier, program.generations[number] + 1
    counted = first.counted.get((at, phase), 0)
    if first.completed[at] <= phase or not counted:
        return
    needed, last = 0, -1
    for last in steps_of(counted):
        needed |= order.past[last]
    if not needed >> number & 1:
        yield books.overrun(program, last, phase, number), needed, -1
