"""program: what a CTA's warps and asynchronous operations do to barriers and buffers.

A program is what one run recorded, without its numbers: for every actor the steps that
another actor can notice. A warp is an actor, and so is each asynchronous operation,
which starts at its issue. A step counts on a barrier, waits for a phase, peeks at one,
or reads and writes cells. A cell is a range of bytes that is used as a whole, such as
one stage of a buffer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

WORD = "the word of "
"""How the name of a barrier's own cell begins."""
ELSEWHERE = "on another CTA's mbarrier"
"""How what leaves a CTA, or comes to it, is called in `Program.unmodelled`."""
EXIT = "the CTA"
"""Name of the cell that all asynchronous work in a CTA reads, and its exit writes."""
MOST_NAMES = 4
"""Cells that a description names."""

Kind = Literal["count", "wait", "peek", "access", "pass"]


@dataclass(frozen=True, slots=True)
class Barrier:
    """An mbarrier, or one of a CTA's named barriers.

    Attributes
    ----------
    name
        ``"mainloop.full[0]"``, or ``"bar 1"``.
    count
        Arrivals, of threads or commits, that complete a phase.
    ring
        The pipeline it belongs to; barriers of a ring are searched together.
    named
        Whether a wait names a round, not a parity, as ``bar.sync`` does.
    """

    name: str
    count: int
    ring: str
    named: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that an actor does at once.

    Attributes
    ----------
    kind
        ``count`` arrives, expects or completes bytes; ``wait`` blocks until a phase is
        complete; ``peek`` asks, and a yes makes a later wait pass; ``access`` touches
        cells only; ``pass`` does nothing. A count and a wait may touch cells too.
    arrivals, tx_bytes
        What a count adds: arrivals, and bytes that are expected (positive) or have
        come (negative).
    parity
        Of the phase that a wait or peek asks for.
    generation
        Which phase of the barrier that is, from 0; -1 is the one before the first,
        which parity 1 finds complete on a fresh barrier. None takes it from the actor's
        own waits: the first phase of this parity from the last one it waited for.
    peek
        Of a wait: the peek whose yes makes it pass, by number; -1 if there is none.
    arrival
        Of a wait on a named barrier: the actor's arrival, by number.
    reads, writes
        Cells.
    after
        Steps of other actors that come first, by number: the issue of an operation,
        operations that land before it, a group that a ``wait_group`` waits for.
    source
        ``file:line`` of the statement.
    event
        Step in the trace, or -1.
    """

    actor: str
    operation: str
    kind: Kind
    barrier: int = -1
    arrivals: int = 0
    tx_bytes: int = 0
    parity: int = 0
    generation: int | None = None
    peek: int = -1
    arrival: int = -1
    reads: tuple[int, ...] = ()
    writes: tuple[int, ...] = ()
    after: tuple[int, ...] = ()
    source: str = ""
    event: int = -1


@dataclass(frozen=True)
class Program:
    """Steps of one CTA, numbered from 0; each actor's come in its order.

    Attributes
    ----------
    overlaps
        For a cell the other cells that share bytes with it.
    unmodelled
        Operations of the run whose effect on order is not modelled.
    """

    barriers: Sequence[Barrier]
    cells: Sequence[str]
    steps: Sequence[Step]
    overlaps: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    unmodelled: tuple[str, ...] = ()
    name: str = ""

    @property
    def counts(self) -> bool:
        """Whether every arrival at its barriers is one of its own steps."""
        return not any(name.endswith(ELSEWHERE) for name in self.unmodelled)

    @cached_property
    def actors(self) -> list[list[int]]:
        """Steps of each actor, in the order in which actors begin."""
        lists: dict[str, list[int]] = {}
        for number, step in enumerate(self.steps):
            lists.setdefault(step.actor, []).append(number)
        return list(lists.values())

    @cached_property
    def actor_of(self) -> list[int]:
        """Position in `actors` of each step's actor."""
        found = [0] * len(self.steps)
        for actor, steps in enumerate(self.actors):
            for number in steps:
                found[number] = actor
        return found

    @cached_property
    def generations(self) -> list[int]:
        """Phase that each wait and peek of an mbarrier is for; -2 for other steps."""
        found = [-2] * len(self.steps)
        for steps in self.actors:
            last: dict[int, int] = {}
            for number in steps:
                step = self.steps[number]
                if step.kind not in ("wait", "peek") or step.arrival >= 0:
                    continue
                low = last.get(step.barrier, -1)
                asked = low + ((low ^ step.parity) & 1)
                found[number] = asked if step.generation is None else step.generation
                if step.kind == "wait":
                    last[step.barrier] = max(low, found[number])
        return found

    @cached_property
    def waits(self) -> dict[tuple[int, int], list[int]]:
        """Waits for each phase of an mbarrier, by (barrier, generation)."""
        table: dict[tuple[int, int], list[int]] = {}
        for number, step in enumerate(self.steps):
            if step.kind == "wait" and step.arrival < 0:
                key = step.barrier, self.generations[number]
                table.setdefault(key, []).append(number)
        return table

    def touched(self, cell: int) -> tuple[int, ...]:
        """Return the cell and those that share bytes with it."""
        return (cell, *self.overlaps.get(cell, ()))

    def describe(self, number: int) -> str:
        """Say who does what where, for a witness."""
        step = self.steps[number]
        words = [step.actor]
        if not step.actor.startswith(step.operation):
            words.append(step.operation)
        if step.barrier >= 0:
            words.append(self.barriers[step.barrier].name)
        if step.kind in ("wait", "peek") and step.arrival < 0:
            words.append(f"parity {step.parity}")
        if step.kind == "wait":
            words.append("passes")
        if step.arrivals:
            words.append(f"arrives {step.arrivals}")
        if step.tx_bytes:
            words.append(f"{step.tx_bytes:+,} bytes")
        for verb, cells in (("reads", step.reads), ("writes", step.writes)):
            names = [self.cells[c] for c in cells]
            if step.barrier >= 0:
                names = [name for name in names if not name.startswith(WORD)]
            names = [name for name in names if name != EXIT]
            if len(names) > MOST_NAMES:
                names[MOST_NAMES:] = [f"and {len(names) - MOST_NAMES} more"]
            if names:
                words.append(f"{verb} {', '.join(names)}")
        return " ".join(words) + (f" at {step.source}" if step.source else "")

    def with_step(self, number: int, step: Step) -> Program:
        """Return the program with another step in one place."""
        steps = list(self.steps)
        steps[number] = step
        return Program(
            self.barriers, self.cells, steps, self.overlaps, self.unmodelled, self.name
        )


class ProgramBuilder:
    """Collects the steps of a small program; every method returns the step's number.

    ::

        build = ProgramBuilder()
        full = build.barrier("ring.full[0]", 1)
        stage = build.cell("A 0")
        issue = build.count("load", full, arrivals=1, tx_bytes=16)
        build.count("tma 0", full, tx_bytes=-16, writes=[stage], after=[issue])
        build.wait("mma", full, 0)
        build.access("mma", reads=[stage])
        program = build.program()
    """

    def __init__(self, name: str = "") -> None:
        self.barriers: list[Barrier] = []
        self.cells: list[str] = []
        self.steps: list[Step] = []
        self.overlaps: dict[int, tuple[int, ...]] = {}
        self.name = name

    def barrier(self, name: str, count: int, *, named: bool = False) -> int:
        """Add a barrier, and return its number."""
        self.barriers.append(Barrier(name, count, ring_of(name), named))
        return len(self.barriers) - 1

    def cell(self, name: str) -> int:
        """Add a cell, and return its number."""
        self.cells.append(name)
        return len(self.cells) - 1

    def add(self, step: Step) -> int:
        """Add a step, the last one so far of its actor."""
        self.steps.append(step)
        return len(self.steps) - 1

    def count(
        self,
        actor: str,
        barrier: int,
        *,
        arrivals: int = 0,
        tx_bytes: int = 0,
        reads: Iterable[int] = (),
        writes: Iterable[int] = (),
        after: Iterable[int] = (),
        operation: str = "mbarrier.arrive",
        source: str = "",
    ) -> int:
        """Arrive, expect bytes (positive) or complete them (negative)."""
        return self.add(
            Step(
                actor,
                operation,
                "count",
                barrier,
                arrivals,
                tx_bytes,
                reads=tuple(reads),
                writes=tuple(writes),
                after=tuple(after),
                source=source,
            )
        )

    def wait(
        self, actor: str, barrier: int, parity: int, *, peek: int = -1, source: str = ""
    ) -> int:
        """Wait for the phase of a parity, unless a peek saw it."""
        operation = "mbarrier.try_wait.parity"
        return self.add(
            Step(
                actor,
                operation,
                "wait",
                barrier,
                parity=parity,
                peek=peek,
                source=source,
            )
        )

    def peek(self, actor: str, barrier: int, parity: int, *, source: str = "") -> int:
        """Ask once; the answer is used by a later wait."""
        operation = "mbarrier.test_wait.parity"
        return self.add(
            Step(actor, operation, "peek", barrier, parity=parity, source=source)
        )

    def sync(self, actor: str, barrier: int, threads: int, *, source: str = "") -> int:
        """``bar.sync``: arrive on a named barrier, and wait for its round."""
        arrival = self.count(
            actor, barrier, arrivals=threads, operation="bar.sync", source=source
        )
        return self.add(
            Step(actor, "bar.sync", "wait", barrier, arrival=arrival, source=source)
        )

    def access(
        self,
        actor: str,
        *,
        reads: Iterable[int] = (),
        writes: Iterable[int] = (),
        after: Iterable[int] = (),
        operation: str = "access",
        source: str = "",
    ) -> int:
        """Read and write cells."""
        return self.add(
            Step(
                actor,
                operation,
                "access",
                reads=tuple(reads),
                writes=tuple(writes),
                after=tuple(after),
                source=source,
            )
        )

    def program(self) -> Program:
        """Return what was collected."""
        return Program(
            tuple(self.barriers),
            tuple(self.cells),
            tuple(self.steps),
            dict(self.overlaps),
            name=self.name,
        )


def ring_of(name: str) -> str:
    """Ring of a barrier, from its name: ``"mainloop.full[0]"`` is of ``"mainloop"``."""
    return name.rsplit(".", 1)[0] if "." in name else name.split("[", 1)[0]
