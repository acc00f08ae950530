"""books: each failure with the counts of its barrier and the line that is to blame."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from math import gcd

from fp4ref.evidence.protocol.finding import Finding
from fp4ref.evidence.protocol.program import Program, Step


def over_arrival(program: Program, number: int, phase: int, pending: int) -> Finding:
    """More arrivals than a phase still takes."""
    step, barrier = (
        program.steps[number],
        program.barriers[program.steps[number].barrier],
    )
    found = barrier.count - pending + step.arrivals
    return _blame(
        program,
        number,
        Finding(
            "over-arrival",
            f"{step.actor} arrives {step.arrivals} times, and {pending} of "
            f"{barrier.count} arrivals are pending",
            barrier.name,
            phase,
            arrivals(barrier.count),
            arrivals(found),
        ),
        odd_one(program, step.barrier, number),
    )


def stale(program: Program, number: int, phase: int, meant: int) -> Finding:
    """A step that counts in another phase than in the first schedule."""
    step = program.steps[number]
    return _blame(
        program,
        number,
        Finding(
            "stale count",
            f"{step.operation} of {step.actor} can count in generation {phase} or in "
            f"{meant}: nothing orders it after the phase before",
            program.barriers[step.barrier].name,
            meant,
            f"counts in generation {meant}",
            f"counts in generation {phase}",
        ),
        odd_one(program, step.barrier),
    )


def early(program: Program, number: int, phase: int, missing: int) -> Finding:
    """A phase that completes although some of its steps have not come."""
    step, late = program.steps[number], program.steps[missing]
    return _blame(
        program,
        number,
        Finding(
            "early phase",
            f"generation {phase} completes before {late.operation} of {late.actor}, "
            "which belongs to it, has come",
            program.barriers[step.barrier].name,
            phase,
            counts(late.arrivals, late.tx_bytes) + " more",
            "a complete phase",
        ),
        missing,
    )


def overrun(program: Program, number: int, phase: int, wait: int) -> Finding:
    """A phase that completes before a waiter has seen the one before."""
    waiter = program.steps[wait]
    asked = "the start" if phase == 0 else f"generation {phase - 1}"
    return _blame(
        program,
        number,
        Finding(
            "overrun",
            f"generation {phase} completes before {waiter.actor}, which waits for "
            f"{asked}, has looked",
            program.barriers[waiter.barrier].name,
            phase,
            f"{waiter.actor} has passed its wait of parity {waiter.parity}",
            f"two phases complete before {waiter.actor} looks",
        ),
        wait,
    )


def premature(program: Program, number: int, seen: int) -> Finding:
    """A wait or yes that takes an older phase for its own."""
    step = program.steps[number]
    meant = program.generations[number]
    return _blame(
        program,
        number,
        Finding(
            "premature pass",
            f"{step.operation} of {step.actor} with parity {step.parity} passes after "
            f"{seen} complete phases, and is meant for generation {meant}",
            program.barriers[step.barrier].name,
            meant,
            f"{meant + 1} complete phases",
            f"{seen} complete phases",
        ),
    )


def race(program: Program, number: int, missing: int) -> Finding:
    """An access before another that conflicts and came first in the reference."""
    step, first = program.steps[number], program.steps[missing]
    if step.operation == "exit":
        landed = f"the CTA exits before {first.actor} has landed; nobody waits for it"
        return _blame(program, number, Finding("exit", landed), missing)
    cells = [
        program.cells[c]
        for c in (*step.writes, *step.reads)
        if set(program.touched(c)) & {*first.writes, *first.reads}
    ]
    verb = "writes" if step.writes and cells[0] in _names(program, step) else "reads"
    done = "written" if first.writes else "read"
    return _blame(
        program,
        number,
        Finding(
            "race",
            f"{step.actor} {verb} {cells[0]} before {first.actor} has {done} it; no "
            "barrier orders them",
            expected=f"{first.operation} of {first.actor}, then {step.operation} of "
            f"{step.actor}",
            found="either may come first",
        ),
        missing,
    )


def _names(program: Program, step: Step) -> list[str]:
    return [program.cells[c] for c in step.writes]


def bytes_left(program: Program, at: int, phase: int, tx: int) -> Finding:
    """A tx-count that is not 0 when all is done."""
    odd = odd_one(program, at)
    counters = [
        n for n, s in enumerate(program.steps) if s.barrier == at and s.tx_bytes
    ]
    blamed = odd if odd >= 0 else counters[-1]
    more = f"{tx:,} bytes expected never came" if tx > 0 else f"{-tx:,} too many came"
    return _blame(
        program,
        blamed,
        Finding(
            "bytes",
            f"at the end the tx-count is {tx:+,} bytes: {more}",
            program.barriers[at].name,
            phase,
            "tx-count 0 bytes",
            f"tx-count {tx:,} bytes",
        ),
    )


def deadlock(
    program: Program,
    blocked: Sequence[int],
    completed: Sequence[int],
    pending: Sequence[int],
    tx: Sequence[int],
) -> Finding:
    """Nobody can go on; the barrier is the one that broke the chain."""
    root, odd = _root(program, blocked, pending, tx)
    step, at = program.steps[root], program.steps[root].barrier
    others = dict.fromkeys(
        program.steps[n].actor for n in blocked if program.steps[n].kind == "wait"
    )
    others.pop(step.actor, None)
    waiting = f"; so do {', '.join(others)}" if others else ""
    if at < 0:
        late = f"{step.actor} never starts{waiting}"
        return _blame(program, root, Finding("deadlock", late))
    count = program.barriers[at].count
    came = counts(count - pending[at], 0, zero=f"tx-count {tx[at]:,} bytes")
    return _blame(
        program,
        root,
        Finding(
            "deadlock",
            f"{step.actor} waits for ever{waiting}",
            program.barriers[at].name,
            completed[at],
            counts(count, 0, zero="tx-count 0 bytes"),
            came,
        ),
        odd,
    )


def _root(
    program: Program, blocked: Sequence[int], pending: Sequence[int], tx: Sequence[int]
) -> tuple[int, int]:
    """Return the wait that holds up the others, and the step whose count is odd.

    Its barrier has a step unlike its siblings; else a count unlike the other stages',
    or one that its arrivals never add up to, or not often enough; else it has got a
    part of what it needs.
    """
    waits = [n for n in blocked if program.steps[n].kind == "wait"]
    odd = {n: odd_one(program, program.steps[n].barrier) for n in waits}

    def suspicion(number: int) -> int:
        at = program.steps[number].barrier
        if odd[number] >= 0 and program.steps[odd[number]].barrier == at:
            return 4
        if odd[number] >= 0:
            return 3
        uneven = _odd_barrier(program, at) or _odd_rest(program, at, pending[at])
        if uneven or _too_few(program, at):
            return 2
        part = 0 < pending[at] < program.barriers[at].count or tx[at]
        return 1 if part else 0

    if not waits:
        return blocked[0], -1
    root = max(waits, key=suspicion)
    return root, odd[root]


def _odd_barrier(program: Program, at: int) -> bool:
    """Whether a barrier's count is unlike most of its ring's side."""
    side = _side(program, at)
    numbers = [
        barrier.count
        for n, barrier in enumerate(program.barriers)
        if _side(program, n) == side
    ]
    usual, times = Counter(numbers).most_common(1)[0]
    return program.barriers[at].count != usual and times > 1


def _odd_rest(program: Program, at: int, pending: int) -> bool:
    """Whether what is pending is no sum of what the barrier's steps arrive with."""
    given = [step.arrivals for step in program.steps if step.barrier == at]
    unit = gcd(*given)
    return bool(unit and pending % unit)


def _too_few(program: Program, at: int) -> bool:
    """Whether all arrivals on a barrier are too few for the waits on it."""
    given = sum(step.arrivals for step in program.steps if step.barrier == at)
    waited = [
        program.generations[n]
        for n, step in enumerate(program.steps)
        if step.barrier == at and step.kind == "wait"
    ]
    return given < program.barriers[at].count * (max(waited, default=-1) + 1)


def odd_one(program: Program, at: int, number: int = -1) -> int:
    """Step of a ring whose counts are unlike those of its siblings; -1 if none is.

    Siblings are the steps of one statement on the barriers of one ring's side.
    """
    side = _side(program, at)
    groups: dict[tuple[str, str], list[int]] = {}
    for n, step in enumerate(program.steps):
        if step.barrier >= 0 and step.kind in ("count", "pass") and not step.parity:
            if _side(program, step.barrier) != side:
                continue
            who = step.source or re.sub(r"\d+", "#", step.actor)
            # Whoever arrives on a named barrier is a warp, as all others are.
            named = program.barriers[step.barrier].named
            key = ("", "") if named else (who, step.operation)
            groups.setdefault(key, []).append(n)
    for numbers in groups.values():
        values = Counter(_counted(program.steps[n]) for n in numbers)
        usual, times = values.most_common(1)[0]
        odd = [n for n in numbers if _counted(program.steps[n]) != usual]
        if odd and times > len(odd):
            return number if number in odd else odd[0]
    return -1


def _counted(step: Step) -> tuple[int, int]:
    return step.arrivals, step.tx_bytes


def _side(program: Program, at: int) -> str:
    return re.sub(r"\[\d+\]$", "", program.barriers[at].name)


def arrivals(count: int) -> str:
    """Say a number of arrivals."""
    return f"{count} arrival" + ("" if count == 1 else "s")


def counts(arrived: int, tx_bytes: int, zero: str = "") -> str:
    """Say arrivals and bytes."""
    parts = [arrivals(arrived)] if arrived or not tx_bytes else []
    parts += [f"{tx_bytes:+,} bytes"] if tx_bytes else []
    return ", ".join(parts + ([zero] if zero else []))


def _blame(program: Program, number: int, finding: Finding, other: int = -1) -> Finding:
    """Say who fails, and who should have come first or counts unlike the others."""
    step = program.steps[number]
    finding = replace(finding, who=_doing(step), source=step.source)
    if other < 0:
        return finding
    step = program.steps[other]
    return replace(finding, other=_doing(step), other_source=step.source)


def _doing(step: Step) -> str:
    return f"{step.actor}, {step.operation}"
