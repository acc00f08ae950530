"""closure_of_trace: races by searching an explicit graph, from the events of a trace.

It shares no code with the engine and works the other way round: the engine carries
sets forward as a launch runs; here a graph is built from the finished trace, and each
pair of accesses asks for a path from the one to the other, backwards. Edges are those
of PTX.

A thread has three points at any time: where its next generic access, its next hand-over
to the async proxy and its next tcgen05 operation would hang. A synchronisation moves
points; a fence joins them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fp4ref.trace import Event, Range, Trace

G, A, T, C = "generic", "async", "tensor", "committed"
LOAD, STORE = "cp.async.bulk.tensor.2d.load", "cp.async.bulk.tensor.2d.store"
ARRIVALS = ("mbarrier.arrive", "mbarrier.arrive.expect_tx")
TMEM_COLUMN, TMEM_LANE = 4, 2048


@dataclass
class Touch:
    """One access: bytes, and the points that it hangs on and comes out at."""

    step: int
    space: str
    bytes: frozenset[int]
    writes: bool
    asks: tuple[int, ...]
    out: int
    thread: Any
    operation: str


@dataclass
class Graph:
    """What leads to what."""

    into: list[list[int]] = field(default_factory=list)
    of_tmem: set[tuple[int, int]] = field(default_factory=set)
    """Edges that order accesses of TMEM and of nothing else."""

    def node(self, *before: int) -> int:
        self.into.append(list(before))
        return len(self.into) - 1

    def leads(self, source: int, target: int, tmem: bool = False) -> bool:
        """Search backwards from the target, for an access of TMEM or of memory."""
        seen, stack = set(), [target]
        while stack:
            node = stack.pop()
            if node == source:
                return True
            if node not in seen and node >= source:
                seen.add(node)
                before = self.into[node]
                stack += [n for n in before if tmem or (n, node) not in self.of_tmem]
        return False


class Closure:
    """The accesses of a trace and the graph between them."""

    def __init__(self, trace: Trace) -> None:
        self.trace, self.graph = trace, Graph()
        self.point: dict[tuple[Any, str], int] = {}
        self.touches: list[Touch] = []
        self.uses: list[tuple[int, int, int]] = []
        self.inits: dict[int, tuple[int, int]] = {}
        self.phases: dict[tuple[int, int], list[dict[str, int]]] = {}
        self.flips: dict[int, int] = {}
        self.rounds: dict[tuple[int, int], list[dict[str, int]]] = {}
        self.arrived: dict[int, int] = {}
        self.inside: dict[Any, tuple[int, int]] = {}
        self.issued: dict[int, dict[str, Any]] = {}
        self.queue: dict[Any, list[dict[str, Any]]] = {}
        self.bulk_open: dict[Any, list[dict[str, Any]]] = {}
        self.bulk: dict[Any, list[list[dict[str, Any]]]] = {}
        self.tmem_open: dict[Any, list[dict[str, Any]]] = {}
        self.commits: dict[Any, list[tuple[int, int, list[int]]]] = {}
        self.landings = {}
        for event in trace.events:
            if event.kind == "land":
                self.landings.setdefault(event.issued, []).append(event)
        for event in trace.events:
            self.event(event)

    # -- points -------------------------------------------------------------------

    def at(self, thread: Any, view: str) -> int:
        key = thread, view
        if key not in self.point:
            self.point[key] = self.graph.node()
        return self.point[key]

    def move(self, thread: Any, view: str, *more: int) -> None:
        self.point[thread, view] = self.graph.node(self.at(thread, view), *more)

    # -- events -------------------------------------------------------------------

    def event(self, e: Event) -> None:
        thread = (e.cta, e.agent)
        if e.kind == "land":
            self.land(e)
            return
        if (inside := self.inside.pop(thread, None)) is not None:
            for given in self.rounds[inside]:
                self.move(thread, G, given[G])
                self.move(thread, A, given[A])
        handler = {
            "st.shared": self.ordinary,
            "ld.shared": self.ordinary,
            "mbarrier.init": self.init,
            "fence.mbarrier_init": self.fence_init,
            "fence.proxy.async.shared::cta": self.fence_proxy,
            "mbarrier.try_wait.parity": self.wait,
            "bar.sync": self.bar,
            "bar.arrive": self.bar,
            LOAD: self.load,
            STORE: self.store,
            "cp.async.bulk.commit_group": self.commit_group,
            "cp.async.bulk.wait_group": self.wait_group,
            "cp.async.bulk.wait_group.read": self.wait_group,
            "tcgen05.cp": self.cp,
            "tcgen05.commit": self.commit,
            "tcgen05.ld": self.tmem,
            "tcgen05.st": self.tmem,
            "tcgen05.wait::ld": self.wait_tmem,
            "tcgen05.wait::st": self.wait_tmem,
            "tcgen05.fence::before_thread_sync": self.fence_tensor,
            "tcgen05.fence::after_thread_sync": self.fence_tensor,
            "tcgen05.dealloc": self.dealloc,
            **dict.fromkeys(ARRIVALS, self.arrive),
        }.get(e.operation)
        if handler is not None:
            handler(e, thread)

    def touch(
        self,
        e: Event,
        thread: Any,
        ranges: Iterable[Range],
        writes: bool,
        *views: str,
        out: int | None = None,
    ) -> int:
        """Note an access; it comes out at `out`, or at a new point of its own."""
        asks = tuple(self.at(thread, view) for view in views)
        out = self.graph.node() if out is None else out
        spaces: dict[str, set[int]] = {}
        for where in ranges:
            rows = where.start + where.pitch * np.arange(where.rows)[:, None]
            found = (rows + np.arange(where.nbytes)).ravel().tolist()
            spaces.setdefault(where.space, set()).update(found)
        for space, found in spaces.items():
            self.touches.append(
                Touch(
                    e.step,
                    space,
                    frozenset(found),
                    writes,
                    asks,
                    out,
                    thread,
                    e.operation,
                )
            )
        return out

    def ordinary(self, e: Event, thread: Any) -> None:
        out = self.touch(e, thread, e.reads or e.writes, bool(e.writes), G)
        self.move(thread, G, out)

    def init(self, e: Event, thread: Any) -> None:
        out = self.graph.node()
        self.inits[e.operands["mbar"]] = (e.step, out)
        self.move(thread, G, out)

    def fence_init(self, e: Event, thread: Any) -> None:
        mine = [
            out
            for step, out in self.inits.values()
            if self.graph.leads(out, self.at(thread, G))
        ]
        self.move(thread, A, *mine)

    def fence_proxy(self, e: Event, thread: Any) -> None:
        both = self.at(thread, G), self.at(thread, A)
        self.move(thread, G, *both)
        self.move(thread, A, *both)

    def fence_tensor(self, e: Event, thread: Any) -> None:
        if "before" in e.operation:
            self.move(thread, G, self.at(thread, T))
        else:
            known = self.at(thread, G)
            self.move(thread, T, known)
            self.graph.of_tmem.add((known, self.at(thread, T)))

    # -- mbarriers and named barriers -----------------------------------------------

    def use(self, e: Event, thread: Any, mbar: int, view: str) -> None:
        self.uses.append((mbar, e.step, self.at(thread, view)))

    def turned(self, e: Event, mbar: int) -> None:
        for change in e.barrier:
            if change.address == mbar and change.before[0] != change.after[0]:
                self.flips[mbar] = self.flips.get(mbar, 0) + 1

    def give(self, mbar: int, **points: int) -> None:
        key = mbar, self.flips.get(mbar, 0)
        empty = self.graph.node()
        given = {G: points.get("generic", empty), A: points.get("async_", empty)}
        self.phases.setdefault(key, []).append(given)

    def arrive(self, e: Event, thread: Any) -> None:
        mbar = e.operands["mbar"]
        self.use(e, thread, mbar, G)
        self.give(mbar, generic=self.at(thread, G), async_=self.at(thread, A))
        self.turned(e, mbar)

    def wait(self, e: Event, thread: Any) -> None:
        mbar = e.operands["mbar"]
        self.use(e, thread, mbar, G)
        for (other, phase), given in self.phases.items():
            if other == mbar and phase < self.flips.get(mbar, 0):
                for each in given:
                    self.move(thread, G, each[G])
                    self.move(thread, A, each[A])
        for other, phase, points in self.commits.get(thread, ()):
            if other == mbar and phase < self.flips.get(mbar, 0):
                self.move(thread, C, *points)

    def bar(self, e: Event, thread: Any) -> None:
        barrier, threads = e.operands["barrier"], e.operands["threads"]
        count = self.arrived.get(barrier, 0)
        self.arrived[barrier] = count + 1
        key = barrier, count // (threads // 32)
        given = {G: self.at(thread, G), A: self.at(thread, A)}
        self.rounds.setdefault(key, []).append(given)
        if e.operation == "bar.sync":
            self.inside[thread] = key

    # -- asynchronous operations ------------------------------------------------------

    def landed(self, e: Event, agent: str = "") -> list[Event]:
        found = self.landings.get(e.step, [])
        return [x for x in found if not agent or x.agent == agent]

    def load(self, e: Event, thread: Any) -> None:
        out = self.graph.node()
        for landing in self.landed(e):
            self.touch(e, thread, landing.reads, False, A, out=out)
            tile = [w for w in landing.writes if w.size > 8]
            self.touch(e, thread, tile, True, A, out=out)
        self.use(e, thread, e.operands["mbar"], A)
        self.issued[e.step] = {"load": out}

    def store(self, e: Event, thread: Any) -> None:
        source, target = self.graph.node(), self.graph.node()
        for landing in self.landed(e, "tma.read"):
            self.touch(e, thread, landing.reads, False, A, out=source)
        for landing in self.landed(e, "tma"):
            self.touch(e, thread, landing.writes, True, A, out=target)
        self.bulk_open.setdefault(thread, []).append({"r": source, "w": target})

    def commit_group(self, e: Event, thread: Any) -> None:
        group = self.bulk_open.pop(thread, [])
        self.bulk.setdefault(thread, []).append(group)

    def wait_group(self, e: Event, thread: Any) -> None:
        groups = self.bulk.get(thread, [])
        for group in groups[: max(0, len(groups) - e.operands["pending"])]:
            for each in group:
                done = [each["r"]] + ([] if "read" in e.operation else [each["w"]])
                self.move(thread, G, *done)
                self.move(thread, A, *done)

    def cp(self, e: Event, thread: Any) -> None:
        asked = self.at(thread, A), self.at(thread, T), self.at(thread, C)
        smem, tmem = self.graph.node(), self.graph.node()
        for landing in self.landed(e):
            self.touch(e, thread, landing.reads, False, A, out=smem)
            self.touch(e, thread, landing.writes, True, T, C, out=tmem)
        self.queue.setdefault(thread, []).append(
            {A: (smem, asked[0]), T: (tmem, *asked[1:])}
        )

    def commit(self, e: Event, thread: Any) -> None:
        self.use(e, thread, e.operands["mbar"], A)
        self.issued[e.step] = {
            "commit": thread,
            "ops": list(self.queue.get(thread, ())),
        }

    def land(self, e: Event) -> None:
        mine = self.issued.get(e.issued, {})
        mbar = e.operands.get("mbar", 0)
        if "load" in mine:
            self.give(mbar, generic=mine["load"], async_=mine["load"])
        elif "commit" in mine:
            tensor = [n for op in mine["ops"] for n in op[T]]
            memory = [n for op in mine["ops"] for n in op[A]]
            done = self.graph.node(*tensor)
            self.give(mbar, generic=done, async_=self.graph.node(*memory))
            phase = self.flips.get(mbar, 0)
            self.commits.setdefault(mine["commit"], []).append((mbar, phase, [done]))
        self.turned(e, mbar)

    # -- TMEM ---------------------------------------------------------------------

    def tmem(self, e: Event, thread: Any) -> None:
        out = self.graph.node()
        for landing in self.landed(e):
            ranges = landing.reads or landing.writes
            self.touch(e, thread, ranges, bool(landing.writes), T, out=out)
        self.tmem_open.setdefault((thread, e.operation[-2:]), []).append({"out": out})

    def wait_tmem(self, e: Event, thread: Any) -> None:
        done = self.tmem_open.pop((thread, e.operation[-2:]), [])
        self.move(thread, T, *(each["out"] for each in done))

    def dealloc(self, e: Event, thread: Any) -> None:
        first, columns = e.operands["taddr"], e.operands["columns"]
        where = Range("tmem0", first * 4, columns * 4, 128, TMEM_LANE)
        self.touch(e, thread, [where], True, G, T)

    # -- the question -------------------------------------------------------------

    def ordered(self, first: Touch, second: Touch) -> bool:
        tmem = first.space.startswith("tmem")
        return any(self.graph.leads(first.out, ask, tmem) for ask in second.asks)

    def races(self) -> set[tuple[int, int]]:
        """Return every pair that nothing orders, by step.

        A pair is left out if, at each byte, a third access stands between that the
        first is ordered before and that conflicts with all that the first does.
        """
        found = set()
        by_space: dict[str, list[Touch]] = {}
        for each in self.touches:
            by_space.setdefault(each.space, []).append(each)
        for touches in by_space.values():
            for j, second in enumerate(touches):
                for i, first in enumerate(touches[:j]):
                    common = first.bytes & second.bytes
                    if not common or not (first.writes or second.writes):
                        continue
                    if first.step == second.step or self.ordered(first, second):
                        continue
                    left = set(common)
                    for third in touches[i + 1 : j]:
                        stands = third.writes or not first.writes
                        if left & third.bytes and stands and self.ordered(first, third):
                            left -= third.bytes
                    if left:
                        found.add((first.step, second.step))
        for mbar, step, ask in self.uses:
            init, out = self.inits[mbar]
            if not self.graph.leads(out, ask):
                found.add((init, step))
        return found
