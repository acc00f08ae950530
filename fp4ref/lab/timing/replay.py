"""replay: the times of a trace's events by any durations, in the order it had.

With the durations of the trace these are its own times. With others they are what a
machine would take that serves the same work in the same order: what a run anew might
do otherwise, such as another SM taking a tile, is not in them: between the ends of all
published ranges that makes up to a tenth.
"""

from __future__ import annotations

from typing import Any

from fp4ref.hardware import named_barrier
from fp4ref.hardware.timing import Durations
from fp4ref.hardware.timing.work import cost, larger, work_of
from fp4ref.lab.timing.graph import Graph
from fp4ref.lab.timing.node import Node, Release


class Replay:
    """Start and end of each event.

    Parameters
    ----------
    durations
        Those of the trace by default. Fields may be arrays of one length; every time
        is then one too.

    Attributes
    ----------
    starts, ends
        By step, of all but notes. Of a wait the start is where it began.
    eligible, servers
        By step of work: from when on it could be served, and what it takes.
    behind, served
        By step and server: the work that had it before, and from when until when.
    """

    def __init__(self, graph: Graph, durations: Durations | None = None) -> None:
        self.graph = graph
        if durations is None:
            durations = Durations.from_dict(graph.trace.meta["timing"])
        self.durations = durations
        self.starts: dict[int, Any] = {}
        self.ends: dict[int, Any] = {}
        self._free: dict[str, tuple[Any, int]] = {}
        self.eligible: dict[int, Any] = {}
        self.servers: dict[int, list[str]] = {}
        self.behind: dict[tuple[int, str], int] = {}
        self.served: dict[tuple[int, str], tuple[Any, Any]] = {}
        self._latencies: dict[tuple[str, ...], Any] = {(): 0.0}
        for step in graph.order:
            node = graph.nodes[step]
            if node.event.kind == "land":
                self._work(node)
            else:
                self._operation(node)

    @property
    def end(self) -> Any:
        """When everything is done."""
        found: Any = 0.0
        for each in self.ends.values():
            found = larger(found, each)
        return found

    def latency(self, names: tuple[str, ...]) -> Any:
        """Return the sum of some durations."""
        if names not in self._latencies:
            values = [getattr(self.durations, name) for name in names]
            self._latencies[names] = sum(values)
        return self._latencies[names]

    def released(self, release: Release) -> Any:
        """When one of the things that a wait is for is seen."""
        return self.ends[release.step] + self.latency(release.latencies)

    def _operation(self, node: Node) -> None:
        event, start = node.event, 0.0
        for step in node.prior:
            start = larger(start, self.ends[step])
        if node.first:
            start = start + self.durations.cta_start
        took = cost(
            event.operation,
            event.operands,
            node.registers,
            node.again,
            self.durations,
        )
        goes_on: Any = start
        if event.operation in named_barrier.WAITS:
            # It arrives first, and then waits.
            goes_on, took = start + took, 0.0
        if node.own:
            goes_on = larger(goes_on, start + self.latency(node.own))
        for release in node.waits:
            goes_on = larger(goes_on, self.released(release))
        self.starts[event.step], self.ends[event.step] = start, goes_on + took

    def _work(self, node: Node) -> None:
        event, d = node.event, self.durations
        where = event.sm, event.reads, node.writes
        work = work_of(
            event.agent, event.operation, event.operands, where, d, self.graph.sms
        )
        takes, latency = work.takes, work.latency
        if node.cold and work.cold_takes is not None:
            takes, latency = work.cold_takes, work.cold_latency
        start: Any = self.ends[event.issued]
        for release in node.waits:
            start = larger(start, self.released(release))
        self.eligible[event.step] = begun = done = start
        for server, held in takes:
            begins = start
            if server in self._free:
                free, holder = self._free[server]
                begins = larger(start, free)
                self.behind[event.step, server] = holder
            self._free[server] = begins + held, event.step
            self.served[event.step, server] = begins, begins + held
            begun, done = larger(begun, begins), larger(done, begins + held)
        self.servers[event.step] = [server for server, _ in takes]
        lands = done + latency
        for step in node.before:
            lands = larger(lands, self.ends[step])
        self.starts[event.step], self.ends[event.step] = begun, lands
