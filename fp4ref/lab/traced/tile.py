"""tile: what one tile of a timed trace does, cut out of the trace to be repeated.

A step is what a warp does between two things that somebody waits for, or one piece of
asynchronous work. An edge says what a step comes after, in this tile or in an earlier
one. Both are those of the trace (`fp4ref.lab.timing.graph`); nothing is added.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final, NamedTuple

from fp4ref.errors import InputError
from fp4ref.lab.timing.graph import Graph
from fp4ref.lab.timing.node import Node
from fp4ref.trace import Range

LINE_NBYTES: Final = 128
"""What L1 moves in a clock: a part of one line."""
_OPERANDS: Final = (
    *("nbytes", "matrices", "tx_bytes", "cta_mask", "idesc", "cta_group", "a_tmem"),
)
"""Operands on which a duration depends."""
_MEMORY: Final = ("ld.shared", "st.shared", "ld.global", "st.global")
START, WAIT, ORDER = "start", "wait", "order"
LEAST_TILES: Final = 5


class Edge(NamedTuple):
    """What a step comes after.

    Attributes
    ----------
    back
        Tiles back.
    step
        Its place in that tile.
    latencies
        Durations from its end until it is seen.
    kind
        ``"start"``: then the step begins; ``"wait"``: it waits for it; ``"order"``: it
        lands no earlier.
    """

    back: int
    step: int
    latencies: tuple[str, ...]
    kind: str


class Part(NamedTuple):
    """An operation of a warp that a step has some times.

    Attributes
    ----------
    lines
        That go through the SM's L1.
    """

    operation: str
    operands: dict[str, int]
    registers: int
    again: bool
    lines: int
    times: int


@dataclass(frozen=True, slots=True)
class Step:
    """One step.

    Attributes
    ----------
    sm, agent
        Of the warp, or of the unit and who gave it the work.
    operation
        The first of a warp's, or the work's.
    parts
        What the warp does; empty for work.
    own
        Durations until the step's own arrival lets it go on.
    operands, reads, writes, cold
        Of work; the ranges of each space as one.
    """

    sm: int
    agent: str
    operation: str
    parts: list[Part] = field(default_factory=list)
    own: tuple[str, ...] = ()
    operands: dict[str, int] = field(default_factory=dict)
    reads: list[Range] = field(default_factory=list)
    writes: list[Range] = field(default_factory=list)
    cold: bool = False
    edges: list[Edge] = field(default_factory=list)

    @property
    def is_work(self) -> bool:
        """Whether a unit does it."""
        return not self.parts

    @property
    def lines(self) -> int:
        """Lines that go through the SM's L1."""
        return sum(part.lines * part.times for part in self.parts)


def of_trace(graph: Graph) -> list[Step]:
    """Return the steps of the last tile but one.

    Parameters
    ----------
    graph
        Of a trace whose warps always wait: of slow loads.

    Raises
    ------
    InputError
        The trace has too few tiles, or its last ones differ.
    """
    return _Cut(graph).steps()


class _Cut:
    """Cuts a tile out of a graph."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.place: dict[int, tuple[int, Any]] = {}
        self._number()
        last = max(tile for tile, _ in self.place.values())
        self.tile = last - 1
        if last < LEAST_TILES - 1:
            raise InputError(
                f"a trace of {last + 1} tiles of a pair; need {LEAST_TILES} or more"
            )
        self.nodes: dict[Any, Node] = {
            key: graph.nodes[step]
            for step, (tile, key) in self.place.items()
            if tile == self.tile
        }
        self._check()

    def _number(self) -> None:
        """Give every event its tile, and its place among those of its warp there."""
        tiles: dict[Any, int] = defaultdict(lambda: -1)
        count: Counter[Any] = Counter()
        for event in self.graph.trace:
            who = event.cta, event.agent
            if event.kind == "note":
                if event.operation.startswith("tile_scheduler."):
                    tiles[who] += 1
                continue
            if event.kind == "land":
                tile, key = self.place[event.issued]
                key = key, "lands"
            else:
                tile, key = tiles[who], who
            count[tile, key] += 1
            self.place[event.step] = tile, (key, count[tile, key])

    def _check(self) -> None:
        """Refuse a trace whose tiles differ."""
        for back in (1, 2):
            before = {
                key: self.graph.nodes[step].event.operation
                for step, (tile, key) in self.place.items()
                if tile == self.tile - back
            }
            for key, node in self.nodes.items():
                if before.get(key) != node.event.operation:
                    raise InputError(
                        f"event {node.event.step} of the trace, "
                        f"{node.event.operation}, is not that of the tile before; "
                        "record on a clock whose loads are slow"
                    )

    def _after(self, node: Node) -> Iterable[tuple[int, tuple[str, ...], str]]:
        """Yield what a node comes after: step, latencies, kind."""
        for step in node.prior:
            yield step, (), START
        for release in node.waits:
            yield release.step, release.latencies, WAIT
        for step in node.before:
            yield step, (), ORDER

    def steps(self) -> list[Step]:
        """Join what nobody waits for, and number the rest."""
        ends = {
            self.place[step][1]
            for node in self.nodes.values()
            for step, _, _ in self._after(node)
            if not self._follows(node, step)
        }
        ends |= self._staged()
        number: dict[Any, int] = {}
        found: list[Step] = []
        firsts: list[Node] = []
        open_: dict[Any, int] = {}
        for key, node in self.nodes.items():
            event = node.event
            who = event.cta, event.agent
            work = event.kind == "land"
            at = None if work or node.waits or node.own else open_.get(who)
            if at is None:
                at = len(found)
                found.append(_step(node))
                firsts.append(node)
            number[key] = at
            if not work:
                _join(found[at], node)
                if key in ends:
                    open_.pop(who, None)
                else:
                    open_[who] = at
        return [
            replace(step, edges=self._edges(node, number))
            for step, node in zip(found, firsts, strict=True)
        ]

    def _staged(self) -> set[Any]:
        """Return each warp's last store to shared memory: there its phase 1 ends."""
        return set(
            {
                key[0]: key
                for key, node in self.nodes.items()
                if node.event.operation == "st.shared"
            }.values()
        )

    def _follows(self, node: Node, step: int) -> bool:
        """Whether a step is only the same warp's operation before, in this tile."""
        tile, key = self.place[step]
        other = self.graph.nodes[step].event
        return (
            tile == self.tile
            and other.kind != "land"
            and node.event.kind != "land"
            and (other.cta, other.agent) == (node.event.cta, node.event.agent)
            and key in self.nodes
        )

    def _edges(self, node: Node, number: Mapping[Any, int]) -> list[Edge]:
        found = []
        for step, latencies, kind in self._after(node):
            tile, key = self.place[step]
            back = self.tile - tile
            if back <= 2 and tile >= 0:
                found.append(Edge(back, number[key], latencies, kind))
        return sorted(set(found))


def _step(node: Node) -> Step:
    event = node.event
    if event.kind != "land":
        return Step(event.sm, event.agent, event.operation, own=node.own)
    return Step(
        event.sm,
        event.agent,
        event.operation,
        operands=_operands(event.operands),
        reads=_by_space(event.reads),
        writes=_by_space(node.writes),
        cold=node.cold,
    )


def _join(step: Step, node: Node) -> None:
    """Add an operation of a warp to a step."""
    event = node.event
    operands = _operands(event.operands)
    lines = 0
    if event.operation in _MEMORY:
        lines = _lines(event.operation, event.reads + event.writes)
    part = Part(event.operation, operands, node.registers, node.again, lines, 1)
    if step.parts and step.parts[-1]._replace(times=1) == part:
        part = part._replace(times=step.parts.pop().times + 1)
    step.parts.append(part)


def _lines(operation: str, where: Iterable[Range]) -> int:
    """Lines of L1: of a store to global memory those touched, else by bytes."""
    if operation != "st.global":
        return -(-sum(each.size for each in where) // LINE_NBYTES)
    touched = {
        line
        for each in where
        for line in range(
            each.start // LINE_NBYTES, (each.start + each.nbytes - 1) // LINE_NBYTES + 1
        )
    }
    return len(touched)


def _operands(given: Mapping[str, Any]) -> dict[str, int]:
    return {n: int(given[n]) for n in _OPERANDS if given.get(n) is not None}


def _by_space(where: Iterable[Range]) -> list[Range]:
    """Join the ranges of each space: their first address, all their bytes."""
    found: dict[str, tuple[int, int]] = {}
    for each in where:
        start, size = found.get(each.space, (each.start, 0))
        found[each.space] = start, size + each.size
    return [Range(space, start, size) for space, (start, size) in found.items()]


def to_dict(step: Step) -> dict[str, Any]:
    """JSON values; what is empty is left out."""
    found = asdict(step)
    found["reads"], found["writes"] = (
        [[each.space, each.start, each.nbytes] for each in where]
        for where in (step.reads, step.writes)
    )
    return {name: value for name, value in found.items() if value or name == "sm"}


def from_dict(values: Mapping[str, Any]) -> Step:
    """Return a step of `to_dict`."""
    given = dict(values)
    given["parts"] = [Part(*each) for each in given.get("parts", [])]
    for name in ("reads", "writes"):
        given[name] = [Range(*each) for each in given.get(name, [])]
    given["edges"] = [Edge(b, s, tuple(x), k) for b, s, x, k in given["edges"]]
    given["own"] = tuple(given.get("own", ()))
    return Step(**given)
