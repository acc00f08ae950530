"""graph: what every event of a timed trace comes after.

A warp's events come one after the other. Work comes after its issue, in the order in
which the units took it, and a wait after the arrivals that end what it waits for. None
of it depends on how long anything takes, so times for other durations follow from it,
in the order that the recorded run had.
"""

from __future__ import annotations

from collections import defaultdict
from heapq import heapify, heappop, heappush
from typing import Any

from fp4ref.errors import InputError
from fp4ref.hardware.timing.l2 import L2
from fp4ref.hardware.timing.work import waits_for
from fp4ref.lab.timing.node import Node, Release
from fp4ref.lab.timing.releases import Releases
from fp4ref.lab.timing.warps import Warps
from fp4ref.trace import Trace


class Graph:
    """The nodes of a trace, by step.

    Parameters
    ----------
    trace
        Of a run with ``schedule="timed"``.

    Attributes
    ----------
    order
        Steps in an order in which everything comes after what it depends on.

    Raises
    ------
    InputError
        The trace has no times.
    """

    def __init__(self, trace: Trace) -> None:
        if trace.meta.get("timing") is None:
            name = trace.meta.get("schedule", "unknown")
            raise InputError(
                f"a trace of the schedule {name!r:.40} has no times; record one with "
                "schedule='timed'"
            )
        self.trace = trace
        self.sms = int(trace.meta["sms"])
        self.nodes: dict[int, Node] = {}
        self._read()
        self._works = self._claims()
        self._find_cold()
        self.order = self._sorted()

    # -- reading -----------------------------------------------------------------------

    def _read(self) -> None:
        """Make a node of each event, in order of steps."""
        warps, releases = Warps(self.trace), Releases(self.trace, self.nodes)
        for event in self.trace:
            if event.kind == "note":
                continue
            node = self.nodes[event.step] = Node(event)
            if event.kind == "land":
                self._work(node)
                warps.landed(event)
            else:
                warps.read(node)
                releases.wait(node)
            releases.arrive(node)
        releases.resolve()

    def _work(self, node: Node) -> None:
        event = node.event
        node.prior.append(event.issued)
        for step in event.after:
            earlier = self.trace.events[step].operation
            if waits_for(event.operation, earlier):
                node.waits.append(Release(step, (), step))
            node.before.append(step)

    def _claims(self) -> list[int]:
        """Steps of work, in the order in which the units took it."""
        events = self.trace.events

        def key(node: Node) -> tuple[Any, ...]:
            event = node.event
            second = event.agent == "tma" and event.operation.endswith(".store")
            spaces = sorted(where.space for where in node.writes)
            return events[event.issued].end, event.issued, second, spaces

        works = [node for node in self.nodes.values() if node.event.kind == "land"]
        return [node.event.step for node in sorted(works, key=key)]

    def _find_cold(self) -> None:
        """Say which loads bring bytes from memory, and behind whom the others are."""
        l2 = L2()
        for number, step in enumerate(self._works):
            node = self.nodes[step]
            event = node.event
            into = any(where.space.startswith("smem") for where in node.writes)
            if event.agent not in ("tma", "cp.async") or not into:
                continue
            reads = [where for where in event.reads if where.space == "gmem"]
            by = l2.load(reads, number)
            node.cold = by is None
            earlier = [self._works[each] for each in by or () if each < number]
            node.before += earlier

    def _sorted(self) -> list[int]:
        """Sort by dependence; work keeps its order."""
        chain = dict(zip(self._works[1:], self._works, strict=False))
        left, after = {}, defaultdict(list)
        for step, node in self.nodes.items():
            needs = {*node.prior, *node.before, *(each.step for each in node.waits)}
            if step in chain:
                needs.add(chain[step])
            left[step] = len(needs)
            for each in needs:
                after[each].append(step)
        free = [step for step, count in left.items() if not count]
        heapify(free)
        order = []
        while free:
            step = heappop(free)
            order.append(step)
            for each in after[step]:
                left[each] -= 1
                if not left[each]:
                    heappush(free, each)
        if len(order) != len(self.nodes):
            stuck = next(step for step, count in left.items() if count)
            raise InputError(
                f"event {stuck} of the trace comes after itself; make the trace again"
            )
        return order
