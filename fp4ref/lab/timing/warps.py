"""warps: the chain of each warp's events, and of the CTAs on each SM."""

from __future__ import annotations

from collections import defaultdict

from fp4ref.hardware.timing.work import LOAD, WAIT_LOAD, registers_of
from fp4ref.lab.timing.node import Node
from fp4ref.trace import Dim3, Event, Trace


class Warps:
    """What comes before each event of a warp, read in order of steps."""

    def __init__(self, trace: Trace) -> None:
        self._events = trace.events
        self._shape = trace.meta["cluster"]
        self._last: dict[tuple[Dim3, str], int] = {}
        self._loaded: dict[tuple[Dim3, str], int] = defaultdict(int)
        self._of_cta: dict[Dim3, list[int]] = defaultdict(list)
        self._ctas: dict[int, list[Dim3]] = defaultdict(list)
        self._sms: dict[Dim3, set[int]] = defaultdict(set)
        for event in trace:
            self._sms[self._cluster(event.cta)].add(event.sm)

    def _cluster(self, cta: Dim3) -> Dim3:
        x, y, z = (c // s for c, s in zip(cta, self._shape, strict=True))
        return x, y, z

    def landed(self, event: Event) -> None:
        """Read a landing."""
        self._of_cta[event.cta].append(event.step)
        if event.operation == LOAD:
            key = event.cta, self._events[event.issued].agent
            self._loaded[key] += registers_of(event.reads)

    def read(self, node: Node) -> None:
        """Read what a warp does."""
        event = node.event
        key, cluster = (event.cta, event.agent), self._cluster(event.cta)
        if event.cta not in self._ctas[event.sm]:
            self._ctas[event.sm].append(event.cta)
        if key in self._last:
            node.prior.append(self._last[key])
            node.again = self._events[self._last[key]].operation == event.operation
        else:
            for sm in sorted(self._sms[cluster]):
                others = [c for c in self._ctas[sm] if self._cluster(c) != cluster]
                node.prior += self._of_cta[others[-1]] if others else []
            node.first = bool(node.prior)
        self._last[key] = event.step
        self._of_cta[event.cta].append(event.step)
        if event.operation == WAIT_LOAD:
            node.registers = self._loaded.pop(key, 0)
