"""clock: the schedule "timed", in which everything takes time.

A discrete-event simulation. Every warp has a time of its own, which its operations
move on. Asynchronous work comes to its unit when it was issued, and is served in the
order of these times; what it takes (`fp4ref.hardware.timing.work`) says when it lands.
A wait ends at its warp's time, or a latency after what it waits for, whichever is
later. The machine always does what is earliest next: a warp that runs to its next wait,
or work that lands. So between two waits a warp is ahead of the others by a few
operations, and events of a trace are nearly, but not exactly, in the order of time.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from heapq import heappop, heappush
from math import inf
from typing import Any, Final, TypeVar

from fp4ref.hardware.timing.durations import Durations
from fp4ref.hardware.timing.l2 import L2
from fp4ref.hardware.timing.work import (
    LOAD,
    WAIT_LOAD,
    Work,
    cost,
    registers_of,
    waits_for,
    work_of,
)

WarpT = TypeVar("WarpT")
OpT = TypeVar("OpT")
_NAME: Final = "timed"


class Timed:
    """The schedule "timed": the earliest goes first.

    Parameters
    ----------
    durations
        What everything takes; the published values by default.

    Attributes
    ----------
    sms
        Of the machine, which says so.
    last
        The latest time at which the machine did something.
    """

    name = _NAME
    lands_at_issue = False
    warps_first = False

    def __init__(self, durations: Durations | None = None) -> None:
        self.durations = durations or Durations.of()
        self.sms = 1
        self.last = 0.0
        self._acting: Any = None
        self._landing: Any = None
        self._coming: list[tuple[float, int, Any]] = []
        self._served: list[tuple[float, int, Any]] = []
        self._issued = 0
        self._free: dict[str, float] = {}
        self._landed_at: list[float] = []
        self._l2 = L2()
        self._arrivals: dict[Hashable, float] = {}
        self._flips: dict[Hashable, float] = {}
        self._sm_free: dict[int, float] = {}
        self._last_landing: dict[Hashable, float] = {}

    # -- what goes next ---------------------------------------------------------------

    def choose(self, warps: Sequence[WarpT], ops: Sequence[OpT]) -> WarpT | OpT | None:
        """Return the warp or the operation whose time is the earliest."""
        warp, wake = None, inf
        for each in warps:
            if (time := self._wakes(each)) < wake:
                warp, wake = each, time
        while True:
            while self._served and self._served[0][2].landed:
                heappop(self._served)
            lands = self._served[0][0] if self._served else inf
            if self._coming and self._coming[0][0] <= min(wake, lands):
                self.serve(heappop(self._coming)[2])
            elif lands <= wake and lands < inf:
                found: OpT = heappop(self._served)[2]
                return found
            else:
                return warp

    def peek(self, done: bool) -> bool:
        """Tell the truth; `sees` has the time."""
        return done

    def _wakes(self, warp: Any) -> float:
        """When a warp that can run goes on."""
        time: float = warp.time
        if warp.blocked is None:
            return time
        return max(time, self.visible(warp.blocked))

    def visible(self, blocked: Any) -> float:
        """When what a warp waits for is visible to it."""
        known = getattr(blocked, "visible_at", None)
        return self.last if known is None else float(known(self))

    # -- warps ------------------------------------------------------------------------

    @property
    def now(self) -> float:
        """Time of who acts."""
        if self._landing is not None:
            return float(self._landing.lands)
        return self.last if self._acting is None else float(self._acting.time)

    def begin(self, cta: Any, sms: Sequence[int]) -> None:
        """Start a CTA's warps, when all SMs of its cluster are free."""
        free = [self._sm_free[sm] for sm in sms if sm in self._sm_free]
        start = max(free) + self.durations.cta_start if free else 0.0
        for warp in cta.warps:
            warp.time = start

    def exit(self, cta: Any) -> None:
        """End a CTA."""
        ends = [warp.time for warp in cta.warps]
        ends.append(self._last_landing.get(cta.ctaid, 0.0))
        self._sm_free[cta.sm.index] = max(ends)

    def act(self, warp: Any) -> None:
        """Let a warp be the one that acts; None for nobody."""
        if warp is not None:
            self.last = max(self.last, self._wakes(warp))
        self._acting = warp

    def resume(self, warp: Any, blocked: Any) -> bool:
        """Move a warp's time to the end of a wait; whether it had to wait."""
        visible = self.visible(blocked)
        if visible <= warp.time:
            return False
        if warp.waits_since is None:
            warp.waits_since = warp.time
        warp.time = visible
        return True

    def spend(self, warp: Any, operation: str, operands: Any) -> tuple[float, float]:
        """Take a warp's time for an operation; its start and end.

        The start of a wait is where it began.
        """
        start = warp.time if warp.waits_since is None else warp.waits_since
        warp.waits_since = None
        again = operation == warp.did
        warp.time += cost(operation, operands, warp.loaded, again, self.durations)
        warp.did = operation
        if operation == WAIT_LOAD:
            warp.loaded = 0
        return start, warp.time

    # -- asynchronous work ------------------------------------------------------------

    def issued(self, op: Any) -> None:
        """Take work that the acting warp issued."""
        warp = self._acting
        op.ready = warp.time
        if op.operation == LOAD:
            warp.loaded += registers_of(op.reads)
        heappush(self._coming, (op.ready, self._issued, op))
        self._issued += 1

    def need(self, op: Any) -> None:
        """Serve an operation that the acting warp needs at once, before its turn."""
        self._coming = [each for each in self._coming if each[2] is not op]
        self._coming.sort(key=lambda each: each[:2])
        if op.number < 0:
            self.serve(op)
        if self._acting is not None:
            self._acting.time = max(self._acting.time, op.lands)

    def land(self, op: Any) -> Any:
        """Let work that lands be what acts; returns what was."""
        before = self._landing
        self._landing = op
        if op is not None:
            self.last = max(self.last, op.lands)
            ends = self._last_landing.get(op.ctaid, 0.0)
            self._last_landing[op.ctaid] = max(ends, op.lands)
        return before

    def serve(self, op: Any) -> None:
        """Say when an operation starts and when it lands."""
        op.number = len(self._landed_at)
        where = op.sm, op.reads, op.writes
        work = work_of(
            op.unit, op.operation, op.operands, where, self.durations, self.sms
        )
        takes, latency, after = self._found(work, op)
        start = op.ready
        for before in op.after:
            if waits_for(op.operation, before.operation):
                start = max(start, before.lands)
        op.starts = done = start
        for server, held in takes:
            begins = max(start, self._free.get(server, 0.0))
            self._free[server] = begins + held
            op.starts, done = max(op.starts, begins), max(done, begins + held)
        lands = max(done + latency, after)
        op.lands = max([lands, *(before.lands for before in op.after)])
        self._landed_at.append(op.lands)
        heappush(self._served, (op.lands, op.number, op))

    def _found(self, work: Work, op: Any) -> tuple[Any, Any, float]:
        """Return servers and latency of a load, and the time that it cannot beat."""
        if work.cold_takes is None:
            return work.takes, work.latency, 0.0
        by = self._l2.load(op.reads, op.number)
        if by is None:
            return work.cold_takes, work.cold_latency, 0.0
        earlier = (self._landed_at[number] for number in by if number < op.number)
        return work.takes, work.latency, max(earlier, default=0.0)

    # -- what waits are for -----------------------------------------------------------

    def credit(self, space: str, address: int, flipped: bool) -> None:
        """Note that an mbarrier's counts change now, and whether its phase ends."""
        key = space, address
        arrives = self.now + (self.durations.remote_arrive if self._far(space) else 0.0)
        latest = max(self._arrivals.get(key, 0.0), arrives)
        if flipped:
            self._flips[key] = latest
            self._arrivals.pop(key, None)
        else:
            self._arrivals[key] = latest

    def _far(self, space: str) -> bool:
        """Whether a barrier is in another SM than who acts on it."""
        if self._landing is not None:
            return far(self._landing.sm, self._landing.writes, space)
        return self._acting is not None and space != self._acting.smem.space

    def flip(self, space: str, address: int) -> float:
        """When a waiter sees the last phase of an mbarrier that has ended."""
        flip = self._flips.get((space, address))
        return 0.0 if flip is None else flip + self.durations.mbarrier_wake

    def mark(self, key: Hashable) -> None:
        """Note that something happens now that others may wait for."""
        self._flips[key] = max(self._flips.get(key, 0.0), self.now)

    def marked(self, key: Hashable, latency: float = 0.0) -> float:
        """When the last of what was marked is visible."""
        mark = self._flips.get(key)
        return 0.0 if mark is None else mark + latency


def far(sm: int, writes: Sequence[Any], space: str) -> bool:
    """Whether work signals a barrier outside of the SM whose memory it fills.

    Parameters
    ----------
    sm
        Of who issued it, where it fills none.
    """
    filled = [each.space for each in writes if each.space.startswith("smem")]
    return space not in (filled or [f"smem{sm}"])
