"""recorder: collects events and deltas while a machine runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from fp4ref.trace.events import Barrier, Bytes, Dim3, Event, Kind, Range
from fp4ref.trace.recorded import Trace


class Recorder:
    """Collects events and deltas while a machine runs.

    The machine opens an event with `begin`, its memories report every access through
    `access`, and `end` closes it. A consumer that watches events as they come (a race
    detector, a progress bar) is given to `observers`.
    """

    def __init__(self) -> None:
        self.trace = Trace()
        self.observers: list[Any] = []
        self._reads: list[Range] = []
        self._writes: list[Range] = []
        self._deltas: list[Bytes] = []
        self._barriers: list[Barrier] = []

    @property
    def step(self) -> int:
        """Step number of the event that is open or comes next."""
        return len(self.trace.events)

    def image(self, space: str, data: Bytes, base: int) -> None:
        """Keep the memory of `space` as it is before the first event."""
        self.trace.images[space] = data.copy()
        self.trace.base[space] = base

    def read(self, where: Range) -> None:
        """Note a read by the open event."""
        self._reads.append(where)

    def write(self, where: Range, delta: Bytes) -> None:
        """Note a write by the open event; `delta` is old XOR new."""
        self._writes.append(where)
        self._deltas.append(delta)

    def barrier(self, change: Barrier) -> None:
        """Note an mbarrier's change by the open event."""
        self._barriers.append(change)

    def end(
        self,
        sm: int,
        cta: Dim3,
        agent: str,
        operation: str,
        kind: Kind,
        operands: Mapping[str, Any],
        *,
        frames: Sequence[str] = (),
        source: str = "",
        kernel_source: str = "",
        issued: int = -1,
        after: Sequence[int] = (),
        time: tuple[float, float] | None = None,
    ) -> Event:
        """Close the event: give it the accesses noted since the last one."""
        event = Event(
            self.step,
            sm,
            cta,
            agent,
            operation,
            kind,
            operands,
            tuple(self._reads),
            tuple(self._writes),
            tuple(self._barriers),
            tuple(frames),
            source,
            kernel_source,
            issued,
            tuple(after),
            *(time or ()),
        )
        self.trace.events.append(event)
        self.trace.deltas.append(tuple(self._deltas))
        self._reads, self._writes, self._deltas = [], [], []
        self._barriers = []
        for observer in self.observers:
            observer(event)
        return event

    def prolong(self, step: int, end: float) -> None:
        """Let an event end later than it seemed when it was recorded."""
        self.trace.events[step] = replace(self.trace.events[step], end=end)
