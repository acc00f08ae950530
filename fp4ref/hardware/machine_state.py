"""machine_state: what the warps of all SMs share, above all what is in flight.

Asynchronous units work in two steps. An instruction *issues* an `AsyncOp`; later it
*lands*: it reads its operands, writes its result and signals. What must land before it
is in `AsyncOp.after`; all else is free, and the schedule decides. A conflict with an
operation in flight is a fault at issue, and at any other access.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import CodeType
from typing import Literal

from fp4ref.errors import HardwareFault, InputError, ReadWhileInFlight
from fp4ref.hardware.advisory import SILENT, Advisory
from fp4ref.hardware.byte_array import Memory
from fp4ref.hardware.cycle_counter import CycleCounter
from fp4ref.hardware.global_memory import GlobalMemory
from fp4ref.hardware.in_flight import AsyncOp, Reach, closure, find_conflict
from fp4ref.hardware.order.engine import Order
from fp4ref.hardware.order.unobserved import Unobserved
from fp4ref.hardware.schedule import Eager, Schedule
from fp4ref.hardware.source_line import caller, source_line
from fp4ref.hardware.timing import Timed
from fp4ref.hardware.waiting_clusters import WaitingClusters
from fp4ref.trace import Dim3, Range, Recorder

Ordering = Literal["ptx", "shipped"]


class MachineState:
    """Global memory, the operations in flight, and the books of a machine.

    Parameters
    ----------
    sm_count
        Streaming multiprocessors.
    schedule, ordering, recorder, watched
        As of `fp4ref.hardware.machine.Machine`.

    Attributes
    ----------
    in_flight
        Operations that have not landed, oldest first.
    cluster
        Extents of the last launch's clusters, in CTAs.
    pending
        The clusters that have not been launched.
    cta_group, cta_group_user
        Of the launch's tcgen05 instructions, 0 before the first; and what that was.
    stats, advisories
        How often each operation was issued, and each `Advisory` relied on.
    agent
        Who acts now, for faults.
    order
        Watches which accesses are ordered, if anything does.
    clock
        The schedule, if it is one with times.
    cycles
        What a kernel reads as time.
    """

    def __init__(
        self,
        sm_count: int,
        schedule: Schedule | None,
        ordering: Ordering,
        recorder: Recorder | None,
        watched: bool,
    ) -> None:
        if ordering not in ("ptx", "shipped"):
            raise InputError(f"ordering {ordering!r}: say 'ptx' or 'shipped'")
        self.sm_count = sm_count
        self.schedule: Schedule = schedule or Eager()
        self.clock = self.schedule if isinstance(self.schedule, Timed) else None
        if self.clock is not None:
            self.clock.sms = sm_count
        self.cycles = CycleCounter()
        self.ordering: Ordering = ordering
        self.recorder = recorder
        self.order: Order | Unobserved = (
            Order(ordering, self) if watched else Unobserved()
        )
        self.memories: list[Memory] = []
        self.in_flight: list[AsyncOp] = []
        self.cluster: Dim3 = (1, 1, 1)
        self.pending = WaitingClusters()
        self.dependents_launched = False
        self.cta_group = 0
        self.cta_group_user = ""
        self.stats: dict[str, int] = {}
        self.advisories: dict[str, int] = {}
        self.agent = "host"
        self._landing = False
        self.known_code: dict[CodeType, str | None] = {}
        self.gmem = GlobalMemory()
        self.watch(self.gmem)

    def watch(self, memory: Memory) -> None:
        """Let no access to `memory` conflict with what is in flight."""
        memory.guard = self.guard
        memory.who = lambda: self.agent
        self.memories.append(memory)

    def now(self) -> int:
        """Step of the next event, or -1 untraced."""
        return self.recorder.step if self.recorder else -1

    def locate(self, step: int) -> str:
        """``file:line`` of an event's statement; '' if it was not recorded."""
        events = self.recorder.trace.events if self.recorder else []
        if not 0 <= step < len(events):
            return ""
        return events[step].kernel_source or events[step].source

    def source(self) -> str:
        """``file:line`` of the kernel statement that is executing."""
        return source_line(caller(), self.known_code)

    def count(self, operation: str) -> None:
        """Count one operation in `stats`."""
        self.stats[operation] = self.stats.get(operation, 0) + 1

    def allows(self, advisory: Advisory, *, used: bool = True) -> bool:
        """Return whether a kernel may rely on what the PTX text does not promise.

        Where it may and does (`used`), the use is counted in `advisories`.
        """
        if self.ordering == "ptx" and advisory not in SILENT:
            return False
        if used:
            text = advisory.value
            self.advisories[text] = self.advisories.get(text, 0) + 1
        return True

    def put_in_flight(self, op: AsyncOp) -> None:
        """Take an operation that was issued; the eager schedule lands it at once."""
        self.in_flight.append(op)
        if self.clock is not None:
            self.clock.issued(op)
        if self.schedule.lands_at_issue:
            self.land(op)

    def land(self, op: AsyncOp) -> None:
        """Land an operation whose turn it is."""
        outer_agent, outer_landing = self.agent, self._landing
        outer_op = None if self.clock is None else self.clock.land(op)
        self.agent, self._landing = f"{op.unit} for {op.who}", True
        try:
            op.land()
        except HardwareFault as fault:
            fault.statement = fault.statement or op.kernel_source
            raise
        finally:
            self.agent, self._landing = outer_agent, outer_landing
            if self.clock is not None:
                self.clock.land(outer_op)
        before = op.after
        op.finish()
        self.in_flight.remove(op)
        if self.recorder:
            event = self.recorder.end(
                op.sm,
                op.ctaid,
                op.unit,
                op.operation,
                "land",
                op.operands,
                frames=op.frames,
                source=op.source,
                kernel_source=op.kernel_source,
                issued=op.issued,
                after=sorted(each.landed_at for each in before),
                time=None if self.clock is None else (op.starts, op.lands),
            )
            op.landed_at = event.step

    def land_now(self, op: AsyncOp) -> None:
        """Land an operation that something needs at once, and all before it."""
        for before in op.after:
            self.land_now(before)
        if not op.landed:
            if self.clock is not None:
                self.clock.need(op)
            self.land(op)

    def check_conflicts(
        self,
        who: str,
        operation: str,
        reads: Sequence[Range],
        writes: Sequence[Range],
        after: Sequence[AsyncOp],
        reduces: int = 0,
    ) -> None:
        """Raise for an operation that is to come only `after` some of those in flight.

        `reduces` is that of `AsyncOp`.

        Raises
        ------
        ReadWhileInFlight
            It conflicts with one of the others.
        """
        if not self.in_flight:
            return
        mine = Reach.of(reads, writes)
        near = [op for op in self.in_flight if mine.may_conflict(op.reach)]
        ordered = closure(after) if near else ()
        for other in near:
            if other not in ordered:
                self._check_conflict(who, operation, reads, writes, other, reduces)

    def guard(self, where: Range, is_write: bool) -> None:
        """Raise `ReadWhileInFlight` if an operation in flight still uses `where`."""
        if self._landing:
            return
        if not self.in_flight:
            return
        reads, writes = ((), (where,)) if is_write else ((where,), ())
        mine = Reach.of(reads, writes)
        for other in self.in_flight:
            if mine.may_conflict(other.reach):
                self._check_conflict(self.agent, "an access", reads, writes, other)

    def _check_conflict(
        self,
        who: str,
        what: str,
        reads: Sequence[Range],
        writes: Sequence[Range],
        other: AsyncOp,
        reduces: int = 0,
    ) -> None:
        found = find_conflict(reads, writes, other, reduces)
        if found is None:
            return
        memory = next(m for m in self.memories if m.space == found.space)
        raise ReadWhileInFlight(
            f"{what} touches bytes that {other.operation} in flight {found.verb}",
            who=f"{who}; in flight from {other.who}"
            + (f" at {other.statement}" if other.statement else ""),
            where=memory.describe(found.address),
            rule="accesses by asynchronous operations are ordered only by their "
            "completion mechanism or by a listed pipeline order [PTX: Memory "
            "consistency, tcgen05]",
            remedy="wait for the barrier or group that completes it",
        )
