"""releases: which arrivals end each wait of a timed trace."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping
from typing import Any, Final

from fp4ref.hardware import named_barrier
from fp4ref.hardware.timing.clock import far
from fp4ref.lab.timing.node import Node, Release
from fp4ref.trace import Dim3, Event, Trace

OFFSET: Final = (1 << 24) - 1
"""Of a shared address, without the rank."""
_OF_TMEM: Final = {
    "tcgen05.wait::ld": "tcgen05.ld",
    "tcgen05.wait::st": "tcgen05.st",
}
_WORD: Final = {"lanes": 1, "nbytes": 4}


class Releases:
    """Finds what releases each wait, read in order of steps.

    Parameters
    ----------
    nodes
        Of the steps that have been read.
    """

    def __init__(self, trace: Trace, nodes: Mapping[int, Node]) -> None:
        self._nodes, self._shape = nodes, trace.meta["cluster"]
        self._arrived: dict[Hashable, list[Release]] = defaultdict(list)
        self._ended: dict[Hashable, list[Release]] = {}
        self._marks: dict[Hashable, list[Release]] = defaultdict(list)
        self._issued: dict[Hashable, list[int]] = defaultdict(list)
        self._groups: dict[Hashable, list[list[int]]] = defaultdict(list)
        self._lands: dict[int, list[Event]] = defaultdict(list)
        self._waits: list[tuple[Node, list[int], str]] = []
        self._rounds: dict[Hashable, list[Node]] = defaultdict(list)
        self._left = _last_steps(trace)

    # -- arrivals ----------------------------------------------------------------------

    def arrive(self, node: Node) -> None:
        """Read an event that may release others."""
        event = node.event
        if event.kind == "land":
            self._lands[event.issued].append(event)
        for change in event.barrier:
            mbar = change.space, change.address
            self._arrived[mbar] += self._seen(node, change.space)
            if change.before[0] != change.after[0]:
                self._ended[mbar] = self._arrived.pop(mbar)
        name = event.operation
        if name in (*named_barrier.WAITS, "bar.arrive"):
            self._round(node)
        elif name == "barrier.cluster.arrive":
            self._marks[self._cluster_round(event)] += node.began()
        elif name == "red.add" and event.writes:
            self._marks["gmem", event.writes[0].start] += node.began()
        elif name == "tcgen05.dealloc":
            self._marks["tmem", event.sm] += node.began()
        elif event.kind == "issue":
            self._issued[event.cta, event.agent, _family(name)].append(event.step)
        elif name.endswith("commit_group"):
            key = event.cta, event.agent, _family(name)
            self._groups[key].append(self._issued.pop(key, []))

    def _seen(self, node: Node, space: str) -> list[Release]:
        """Say when an arrival on an mbarrier counts."""
        event = node.event
        if event.kind == "land":
            remote = far(event.sm, node.writes, space)
            found = [Release(event.step, (), event.step)]
        else:
            remote, found = space != f"smem{event.sm}", node.began()
        more = ("remote_arrive",) if remote else ()
        return [each.later(*more) for each in found]

    def _cluster_round(self, event: Event) -> Hashable:
        cluster = tuple(c // s for c, s in zip(event.cta, self._shape, strict=True))
        return "cluster", cluster, event.operands["round"]

    def _round(self, node: Node) -> None:
        """Count a warp into a named barrier; release all once they are complete."""
        event = node.event
        key = event.cta, event.operands["barrier"]
        members = self._rounds[key]
        members.append(node)
        threads = event.operands["threads"]
        if threads is None:
            left = self._left[event.cta]
            threads = 32 * sum(last >= event.step for last in left.values())
        if 32 * len(members) < threads:
            return
        del self._rounds[key]
        for each in members:
            if each.event.operation in named_barrier.WAITS:
                each.own = ("named_barrier",)
                each.waits += [
                    found.later("named_barrier")
                    for other in members
                    if other is not each
                    for found in other.began()
                ]

    # -- waits -------------------------------------------------------------------------

    def wait(self, node: Node) -> None:
        """Read an event that may be a wait."""
        event, operands = node.event, node.event.operands
        name = event.operation
        if name == "mbarrier.try_wait.parity":
            key = f"smem{event.sm}", operands["mbar"] & OFFSET
            node.waits += _later(self._ended.get(key, []), "mbarrier_wake")
        elif name == "barrier.cluster.wait":
            marks = self._marks[self._cluster_round(event)]
            node.waits += _later(marks, "cluster_barrier")
        elif name == "ld.global" and event.reads and operands == _WORD:
            marks = self._marks["gmem", event.reads[0].start]
            node.waits += _later(marks, "global_load_latency")
        elif name == "tcgen05.alloc":
            node.waits += self._marks["tmem", event.sm]
        elif name in _OF_TMEM:
            issued = self._issued.pop((event.cta, event.agent, _OF_TMEM[name]), [])
            self._waits.append((node, issued, ""))
        elif ".wait_group" in name:
            groups = self._groups[event.cta, event.agent, _family(name)]
            over = groups[: max(0, len(groups) - operands["pending"])]
            issued = [step for group in over for step in group]
            agent = "tma.read" if name.endswith(".read") else ""
            self._waits.append((node, issued, agent))

    def resolve(self) -> None:
        """Give the waits for a warp's own work the landings of it."""
        for node, issued, agent in self._waits:
            node.waits += [
                Release(event.step, (), event.step)
                for step in issued
                for event in self._lands[step]
                if agent in ("", event.agent)
            ]


def _later(found: list[Release], latency: str) -> list[Release]:
    return [each.later(latency) for each in found]


def _family(operation: str) -> str:
    """Return what work is waited for together."""
    if operation.startswith("cp.async.bulk"):
        return "load" if operation.endswith(".load") else "cp.async.bulk"
    return "cp.async" if operation.startswith("cp.async") else operation


def _last_steps(trace: Trace) -> dict[Dim3, dict[str, int]]:
    """Return the last event of each warp of each CTA."""
    found: dict[Dim3, dict[str, Any]] = defaultdict(dict)
    for event in trace:
        if event.kind in ("sync", "issue", "note"):
            found[event.cta][event.agent] = event.step
    return found
