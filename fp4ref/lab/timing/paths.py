"""paths: who waits for what, and the chain of events that takes all the time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from fp4ref.lab.timing.node import Node, Release
from fp4ref.lab.timing.replay import Replay

_CLOSE = 1e-6


@dataclass(frozen=True, slots=True)
class Stall:
    """A warp that waits.

    Attributes
    ----------
    step
        Of the wait.
    start, clocks
        When it began and how long it was.
    on
        What it waits on: the name of an mbarrier, or the operation.
    by, by_agent, by_operation
        Whose arrival was last: step, warp or unit, and operation.
    """

    step: int
    sm: int
    cta: tuple[int, int, int]
    agent: str
    operation: str
    start: float
    clocks: float
    on: str
    by: int
    by_agent: str
    by_operation: str

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Link:
    """A part of the critical path.

    Attributes
    ----------
    step
        Whose time it is.
    start, clocks
        Where the part begins and how long it is; together they are the whole run.
    what
        ``"warp"``, ``"wait"``, ``"queue"`` behind other work, ``"unit"``, or
        ``"order"`` behind earlier work that has to land first.
    """

    step: int
    start: float
    clocks: float
    what: str

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return asdict(self)


def stalls(replay: Replay) -> list[Stall]:
    """Return every wait that takes time, in order of steps."""
    found = []
    for step, node in replay.graph.nodes.items():
        if node.event.kind == "land" or not node.waits:
            continue
        last = max(node.waits, key=replay.released)
        clocks = replay.released(last) - replay.starts[step]
        if clocks > _CLOSE:
            found.append(_stall(replay, node, last, float(clocks)))
    return found


def _stall(replay: Replay, node: Node, last: Release, clocks: float) -> Stall:
    event, by = node.event, replay.graph.trace.events[last.by]
    names = [
        change.label
        for change in by.barrier
        if change.label and change.address == event.operands.get("mbar", -1) & 0xFFFFFF
    ]
    return Stall(
        event.step,
        event.sm,
        event.cta,
        event.agent,
        event.operation,
        float(replay.starts[event.step]),
        clocks,
        names[0] if names else event.operation,
        last.by,
        by.agent,
        by.operation,
    )


def critical_path(replay: Replay) -> list[Link]:
    """Return the chain of events that ends last, first one first."""
    step = max(replay.ends, key=lambda each: (replay.ends[each], each))
    links: list[Link] = []
    here, server = replay.ends[step], ""
    while step >= 0:
        before, what, earlier, through = _before(replay, step, server)
        links.append(Link(step, float(earlier), float(here - earlier), what))
        step, here, server = before, earlier, through
    return [link for link in links[::-1] if link.clocks > _CLOSE]


def _before(replay: Replay, step: int, server: str) -> tuple[int, str, Any, str]:
    """Return what decides a time: step, in which way, its time, and the server.

    Parameters
    ----------
    server
        The time is when it begins on the step's work; '' is the end of the step.
    """
    node, ends = replay.graph.nodes[step], replay.ends
    if node.event.kind != "land":
        last = _latest(replay, node.waits)
        if last is not None and replay.released(last) > replay.starts[step] + _CLOSE:
            return last.step, "wait", ends[last.step], ""
        prior = max(node.prior, key=ends.__getitem__, default=-1)
        return prior, "warp", ends.get(prior, 0.0), ""
    if not server:
        for each in node.before:
            if ends[each] >= ends[step] - _CLOSE:
                return each, "order", ends[each], ""
        servers = replay.servers[step]
        if servers:
            server = max(servers, key=lambda each: replay.served[step, each][1])
            return step, "unit", replay.served[step, server][0], server
    elif replay.served[step, server][0] > replay.eligible[step] + _CLOSE:
        holder = replay.behind[step, server]
        return holder, "queue", replay.served[holder, server][0], server
    last = _latest(replay, node.waits)
    issued = ends[node.event.issued]
    if last is not None and replay.released(last) > issued + _CLOSE:
        return last.step, "wait", ends[last.step], ""
    return node.event.issued, "warp", issued, ""


def _latest(replay: Replay, releases: Iterable[Release]) -> Release | None:
    return max(releases, key=replay.released, default=None)


def by_operation(replay: Replay, links: Iterable[Link]) -> dict[tuple[str, str], float]:
    """Add up the clocks of a path by operation and way, the most first."""
    total: dict[tuple[str, str], float] = defaultdict(float)
    for link in links:
        total[replay.graph.nodes[link.step].event.operation, link.what] += link.clocks
    return dict(sorted(total.items(), key=lambda item: (-item[1], item[0])))
