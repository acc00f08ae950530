"""recording: the program of a CTA, from the events of a traced run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from fp4ref.errors import TraceError
from fp4ref.evidence.protocol.cells import MBARRIER_NBYTES, Cells, allocation, in_sm
from fp4ref.evidence.protocol.program import (
    ELSEWHERE,
    WORD,
    Barrier,
    Program,
    Step,
    ring_of,
)
from fp4ref.evidence.protocol.skipped_waits import PEEK, WAIT, places
from fp4ref.evidence.protocol.warp_queues import WarpQueues
from fp4ref.hardware import named_barrier
from fp4ref.trace import Dim3, Event, Range, Trace
from fp4ref.trace.recorded_plan import RecordedPlan

NO_BARRIERS = (
    "this trace has no mbarrier events: nothing in it synchronises; make one with "
    "fp4ref.run(..., trace=True)"
)
TOGETHER = ("tcgen05.cp", "tcgen05.mma")
"""Operations of one thread that are one actor if no other step comes between."""
GROUPS = ("cp.async.bulk.", "cp.async.")
"""Prefixes of ``commit_group`` and ``wait_group``, and of what they hold."""
WARP_THREADS = 32


def programs(trace: Trace) -> list[Program]:
    """Return the program of each CTA.

    Raises
    ------
    TraceError
        The trace has no plan, or no mbarrier events.
    """
    if not any(event.barrier for event in trace.events):
        raise TraceError(NO_BARRIERS)
    plan = RecordedPlan.required(trace.meta)
    ctas: dict[Dim3, list[Event]] = {}
    for event in trace.events:
        ctas.setdefault(event.cta, []).append(event)
    ordering = str(trace.meta.get("ordering", "ptx"))
    whole = "fault" not in trace.meta
    return [
        _Recording(events, Cells(plan, trace.base), ordering, whole).program(cta)
        for cta, events in ctas.items()
    ]


class _Recording:
    """Builds the program of one CTA."""

    def __init__(
        self, events: Sequence[Event], cells: Cells, ordering: str, whole: bool
    ) -> None:
        self.events, self.cells, self.ordering = events, cells, ordering
        self.whole = whole
        self.barriers: list[Barrier] = []
        self.at: dict[tuple[str, int], int] = {}
        self.words: dict[int, int] = {}
        self.used: set[tuple[str, int]] = set()
        self.named: dict[tuple[int, int], int] = {}
        self.steps: list[Step] = []
        self.completed: list[int] = []
        self.warps: dict[str, WarpQueues] = {}
        self.unmodelled: dict[str, None] = {}
        self.landings: dict[int, list[Event]] = {}
        warps = set()
        for event in events:
            if event.kind == "land":
                self.landings.setdefault(event.issued, []).append(event)
            elif event.agent.startswith("warp"):
                warps.add(event.agent)
        self.threads = WARP_THREADS * len(warps)
        self.ends = cells.exit()

    def program(self, cta: Dim3) -> Program:
        """Return the steps that some other actor can notice."""
        for event in self.events:
            self.cells.note(event)
        overlaps = self.cells.overlaps()
        self.cells.share(overlaps)
        due = places(self.events)
        for event in self.events:
            for peek in due.get(event.step, ()):
                self._skipped(peek)
            if event.kind == "issue":
                self._issue(event)
            elif event.kind == "sync":
                self._sync(event)
            for changed in event.barrier:
                at = self.at.get((changed.space, changed.address))
                if at is not None and changed.before[0] != changed.after[0]:
                    self.completed[at] += 1
        if self.whole:
            self._exit()
        return Program(
            tuple(self.barriers),
            tuple(self.cells.names),
            tuple(self.steps),
            overlaps,
            tuple(self.unmodelled),
            f"cta {cta}",
        )

    def _exit(self) -> None:
        """End the CTA: what has not landed by then has nowhere to land."""
        last = tuple(warp.last for warp in self.warps.values() if warp.last >= 0)
        self.steps.append(
            Step("exit", "exit", "access", writes=(self.ends,), after=last)
        )

    def _warp(self, event: Event) -> WarpQueues:
        return self.warps.setdefault(event.agent, WarpQueues())

    def _add(self, event: Event, actor: str, kind: Any, **values: Any) -> int:
        self.steps.append(
            Step(
                actor,
                values.pop("operation", event.operation),
                kind,
                source=event.kernel_source or event.source,
                event=event.step,
                **values,
            )
        )
        if actor == event.agent:
            warp = self._warp(event)
            warp.last, warp.merging = len(self.steps) - 1, ""
        return len(self.steps) - 1

    def _sync(self, event: Event) -> None:
        """Add the steps of a statement that a warp does at once."""
        operation, operands = event.operation, event.operands
        if operation == "mbarrier.init":
            self._init(event)
        elif operation.startswith((PEEK, WAIT)) and "parity" in operands:
            self._ask(event)
        elif operation in (*named_barrier.WAITS, "bar.arrive"):
            self._named(event)
        elif operation.startswith("tcgen05.wait::"):
            self._gate(event, self._warp(event).unread.pop(operation[-2:], []))
        elif ".commit_group" in operation:
            warp, prefix = self._warp(event), _prefix(operation)
            warp.groups.setdefault(prefix, []).append(warp.open.pop(prefix, []))
        elif ".wait_group" in operation or ".wait_all" in operation:
            self._wait_group(event)
        elif event.barrier and operation != "mbarrier.inval":
            self._counts(event, event.agent, event)
        elif operation.startswith(("mbarrier.", "bar.", "barrier.")):
            self.unmodelled[operation] = None
        else:
            reads = self.cells.touched(event, event.reads)
            writes = self.cells.touched(event, event.writes)
            writes += self.cells.touched(event, allocation(event))
            if reads or writes:
                self._add(event, event.agent, "access", reads=reads, writes=writes)

    def _init(self, event: Event) -> None:
        """Add a barrier; to use it before is a race with the init."""
        changed = event.barrier[0]
        name = changed.label or f"mbarrier {changed.address:#x}"
        key = changed.space, changed.address
        if key in self.at:
            self.unmodelled["mbarrier.init of a word that was a barrier before"] = None
        self.at[key] = len(self.barriers)
        self.barriers.append(Barrier(name, event.operands["count"], ring_of(name)))
        self.completed.append(0)
        word = Range(changed.space, changed.address, MBARRIER_NBYTES)
        cell = self.cells.add(word, event.agent, True, WORD + name)
        self.words[self.at[key]] = cell
        self._add(event, event.agent, "access", writes=(cell,))

    def _word(self, actor: str, at: int) -> tuple[int, ...]:
        """Cell of a barrier's word, if an actor uses it for the first time.

        Later uses are ordered by the first one.
        """
        if (actor, at) in self.used:
            return ()
        self.used.add((actor, at))
        return (self.words[at],)

    def _barrier(self, event: Event) -> int:
        """Return the barrier that an event asks; -1 if it is not one of this CTA."""
        at = self.at.get((f"smem{event.sm}", event.operands["mbar"]), -1)
        if at < 0:
            self.unmodelled[f"{event.operation} {ELSEWHERE}"] = None
        return at

    def _ask(self, event: Event) -> None:
        """Add a wait that passed, or a peek with either answer."""
        at = self._barrier(event)
        if at < 0:
            return
        warp, values = self._warp(event), self._asked(event, at)
        if word := self._word(event.agent, at):
            # A wait polls the word from its beginning, not from its end.
            self._add(event, event.agent, "access", reads=word)
        if event.operation.startswith(WAIT):
            peek = warp.peeks.pop(at, -1)
            if peek >= 0:
                same = self.steps[peek].parity == values["parity"]
                generation = values["generation"] if same else None
                self.steps[peek] = replace(self.steps[peek], generation=generation)
                peek = peek if same else -1
            self._add(event, event.agent, "wait", peek=peek, **values)
            return
        if not event.operands.get("done"):
            values["generation"] = None
        peek = self._add(event, event.agent, "peek", **values)
        warp.peeks[at] = peek

    def _asked(self, event: Event, at: int) -> dict[str, Any]:
        return {
            "barrier": at,
            "parity": event.operands["parity"],
            "generation": self.completed[at] - 1,
        }

    def _skipped(self, event: Event) -> None:
        """Add the wait that a peek's yes made unnecessary."""
        at = self._barrier(event)
        peek = self._warp(event).peeks.pop(at, -1) if at >= 0 else -1
        if peek >= 0:
            said = self.steps[peek]
            self._add(
                event,
                event.agent,
                "wait",
                operation="mbarrier.try_wait.parity",
                barrier=at,
                parity=said.parity,
                peek=peek,
                generation=said.generation,
            )

    def _named(self, event: Event) -> None:
        """Add an arrival on a named barrier, and the wait of all but arrive."""
        identity = event.operands["barrier"]
        threads = event.operands["threads"] or self.threads
        key = identity, threads
        if key not in self.named:
            self.named[key] = len(self.barriers)
            name = f"bar {identity}"
            self.barriers.append(Barrier(name, threads, name, named=True))
            self.completed.append(0)
        at = self.named[key]
        arrival = self._add(
            event, event.agent, "count", barrier=at, arrivals=WARP_THREADS
        )
        if event.operation in named_barrier.WAITS:
            self._add(event, event.agent, "wait", barrier=at, arrival=arrival)

    def _gate(self, event: Event, steps: list[int]) -> None:
        if steps:
            self._add(event, event.agent, "pass", after=tuple(steps))

    def _wait_group(self, event: Event) -> None:
        """Wait for all groups but the newest; ``.read`` for their sources only."""
        groups = self._warp(event).groups.get(_prefix(event.operation), [])
        pending = event.operands.get("pending", 0)
        of_read = event.operation.endswith(".read")
        covered = groups[: len(groups) - pending] if pending else groups
        self._gate(
            event, [op[0 if of_read else 1] for group in covered for op in group]
        )

    def _counts(
        self, event: Event, actor: str, change: Event, after: tuple[int, ...] = ()
    ) -> list[int]:
        """Add what an event, or the landing of an operation, touches and counts."""
        touched = {
            "reads": self.cells.touched(change, change.reads),
            "writes": self.cells.touched(change, change.writes),
        }
        if actor != event.agent and in_sm(change):
            touched["reads"] += (self.ends,)
        found = []
        for changed in change.barrier:
            at = self.at.get((changed.space, changed.address))
            if at is None:
                self.unmodelled[f"{event.operation} {ELSEWHERE}"] = None
                continue
            (phase, pending, tx), (ended, left, tx_left) = changed.before, changed.after
            over = phase != ended
            touched["reads"] += self._word(actor, at)
            found.append(
                self._add(
                    event,
                    actor,
                    "count",
                    barrier=at,
                    arrivals=pending if over else pending - left,
                    tx_bytes=-tx if over else tx_left - tx,
                    after=after,
                    **touched,
                )
            )
            touched, after = {"reads": (), "writes": ()}, ()
        if not found and (after or touched["reads"] or touched["writes"]):
            found.append(self._add(event, actor, "access", after=after, **touched))
        return found

    def _issue(self, event: Event) -> None:
        """Add an operation: an actor that starts after the warp's last step."""
        landings, warp = self.landings.get(event.step, []), self._warp(event)
        if not landings:
            self.unmodelled[f"{event.operation} that never landed"] = None
            return
        if event.operation in TOGETHER and warp.merging == event.operation:
            self._join(warp.queue[-1], landings)
            return
        after = self._before(event, warp)
        actor = f"{event.operation} {event.step}"
        steps: list[int] = []
        for landing in landings:
            steps += self._counts(event, actor, landing, () if steps else after)
        if not steps:
            steps = [self._add(event, actor, "pass")]
        self._file(event, warp, steps)

    def _join(self, number: int, landings: Sequence[Event]) -> None:
        """Let an operation be one with the one before, of the same name."""
        step = self.steps[number]
        reads, writes = list(step.reads), list(step.writes)
        for landing in landings:
            reads += self.cells.touched(landing, landing.reads)
            writes += self.cells.touched(landing, landing.writes)
        self.steps[number] = replace(
            step, reads=tuple(dict.fromkeys(reads)), writes=tuple(dict.fromkeys(writes))
        )

    def _before(self, event: Event, warp: WarpQueues) -> tuple[int, ...]:
        """Return what an operation comes after: see `fp4ref.hardware.tcgen05_issue`."""
        found = [warp.last] if warp.last >= 0 else []
        operation = event.operation
        if operation in ("tcgen05.mma", "tcgen05.commit") or (
            operation == "tcgen05.cp" and self.ordering == "shipped"
        ):
            found += warp.queue
        elif operation == "cp.async.mbarrier.arrive.noinc":
            found += warp.copies
        elif operation.startswith("tcgen05.") and operation[8:] not in (
            "cp",
            "ld",
            "st",
        ):
            self.unmodelled[operation] = None
        return tuple(found)

    def _file(self, event: Event, warp: WarpQueues, steps: list[int]) -> None:
        """Note the operation where a later one, or a wait, looks for it."""
        operation = event.operation
        warp.merging = operation if operation in TOGETHER else ""
        if operation == "tcgen05.cp":
            warp.queue.append(steps[-1])
        elif operation == "tcgen05.mma":
            # What came before it needs no edge of its own any more.
            warp.queue = [steps[-1]]
        elif operation in ("tcgen05.ld", "tcgen05.st"):
            warp.unread.setdefault(operation[-2:], []).append(steps[-1])
        elif operation == "cp.async":
            warp.copies.append(steps[-1])
        if operation.startswith(GROUPS):
            place = warp.open.setdefault(_prefix(operation), [])
            place.append((steps[0], steps[-1]))


def _prefix(operation: str) -> str:
    return next(prefix for prefix in GROUPS if operation.startswith(prefix))
