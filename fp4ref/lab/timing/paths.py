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
    at_start = False
    while step >= 0:
        here = replay.starts[step] if at_start else replay.ends[step]
        before, what, earlier, start = _before(replay, step, at_start)
        begins = 0.0 if before < 0 else float(earlier)
        links.append(Link(step, begins, float(here) - begins, what))
        step, at_start = before, start
    return [link for link in links[::-1] if link.clocks > _CLOSE]


def _before(replay: Replay, step: int, at_start: bool) -> tuple[int, str, Any, bool]:
    """Return what decides a time: step, in which way, its time, whether its start."""
    node = replay.graph.nodes[step]
    ends = replay.ends
    if node.event.kind == "land" and not at_start:
        for each in node.before:
            if ends[each] >= ends[step] - _CLOSE:
                return each, "order", ends[each], False
        return step, "unit", replay.starts[step], True
    if node.event.kind == "land":
        start = replay.starts[step]
        for server, holder in replay.queue[step]:
            free = replay.starts[holder] + replay.held[holder, server]
            if free >= start - _CLOSE and free > ends[node.event.issued] + _CLOSE:
                return holder, "queue", replay.starts[holder], True
        last = _latest(replay, node.waits)
        if last is not None and replay.released(last) >= start - _CLOSE:
            return last.step, "wait", ends[last.step], False
        return node.event.issued, "warp", ends[node.event.issued], False
    last = _latest(replay, node.waits)
    prior = max(node.prior, key=ends.__getitem__, default=-1)
    if last is not None and replay.released(last) > replay.starts[step] + _CLOSE:
        return last.step, "wait", ends[last.step], False
    return prior, "warp", ends.get(prior, 0.0), False


def _latest(replay: Replay, releases: Iterable[Release]) -> Release | None:
    return max(releases, key=replay.released, default=None)


def by_operation(replay: Replay, links: Iterable[Link]) -> dict[tuple[str, str], float]:
    """Add up the clocks of a path by operation and way, the most first."""
    total: dict[tuple[str, str], float] = defaultdict(float)
    for link in links:
        total[replay.graph.nodes[link.step].event.operation, link.what] += link.clocks
    return dict(sorted(total.items(), key=lambda item: (-item[1], item[0])))
