"""in_flight: an asynchronous operation from issue to landing, its order and conflicts.

Two operations in flight that touch the same bytes, one of them writing, are a conflict
unless one is ordered after the other, or both reduce elements of one size: each element
is one relaxed read-modify-write [PTX: cp.reduce.async.bulk]. `Range` bounds the bytes
of a swizzled tile from outside, so a tile that shares its rows with another one counts
as touching it.

`fp4ref.hardware.order` finds such accesses in every schedule and by their exact bytes,
but only where it watches. The conflict is kept: an untraced run has nothing else, and
the order in which two landings write would decide what it computes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from fp4ref.trace import Dim3, Range

Spans = dict[str, tuple[int, int]]
"""First address and end of what is used in each memory."""


class Reach(NamedTuple):
    """Spans around all that an access touches, and around what it writes."""

    touched: Spans
    written: Spans

    @classmethod
    def of(cls, reads: Iterable[Range], writes: Iterable[Range]) -> Reach:
        """Bound the ranges of an access."""
        touched: Spans = {}
        written: Spans = {}
        for where in writes:
            _widen(written, where)
            _widen(touched, where)
        for where in reads:
            _widen(touched, where)
        return cls(touched, written)

    def may_conflict(self, other: Reach) -> bool:
        """Whether one may write what the other one touches."""
        return _meet(self.written, other.touched) or _meet(self.touched, other.written)


def _widen(spans: Spans, where: Range) -> None:
    first, end = spans.get(where.space, (where.start, where.end))
    spans[where.space] = min(first, where.start), max(end, where.end)


def _meet(some: Spans, others: Spans) -> bool:
    for space, (first, end) in some.items():
        other = others.get(space)
        if other is not None and first < other[1] and other[0] < end:
            return True
    return False


@dataclass(eq=False, slots=True)
class AsyncOp:
    """One asynchronous operation in flight.

    Attributes
    ----------
    who
        The warp that issued it, for faults.
    sm, ctaid
        Where that warp lives.
    unit
        Trace agent of the landing: ``"tma"``, ``"tcgen05"``, ``"clc"``, ``"tmem"``.
    after
        Operations that land first.
    issued, landed_at
        Steps of its events in the trace; -1 untraced.
    access
        Its accesses, for the order of who waits for it.
    reduces
        Bytes of each element that it reduces; 0 for other operations.
    ready, starts, lands
        On the clock of the schedule "timed": when it was issued, when its unit started
        and when it is done.
    number
        In the order in which the units took them; -1 not yet.
    survives_exit
        Whether the operation may outlive its CTA's warps (bulk stores do).
    """

    who: str
    sm: int
    ctaid: Dim3
    unit: str
    operation: str
    operands: Mapping[str, Any]
    land: Callable[[], None]
    reads: Sequence[Range]
    writes: Sequence[Range]
    after: Sequence[AsyncOp]
    survives_exit: bool
    frames: tuple[str, ...]
    source: str
    kernel_source: str
    issued: int
    landed: bool = False
    landed_at: int = -1
    ready: float = 0.0
    starts: float = 0.0
    lands: float = 0.0
    number: int = -1
    access: Any = None
    reduces: int = 0
    _reach: Reach | None = None

    @property
    def reach(self) -> Reach:
        """Spans around its bytes."""
        if self._reach is None:
            self._reach = Reach.of(self.reads, self.writes)
        return self._reach

    @property
    def may_land(self) -> bool:
        """Whether all has landed that comes before it."""
        return all(before.landed for before in self.after)

    @property
    def statement(self) -> str:
        """``file:line`` of the statement that issued it."""
        return self.kernel_source or self.source

    def finish(self) -> None:
        """Mark the operation as landed and let go of what it kept alive."""
        self.landed = True
        self.land, self.after = _nothing, ()


def _nothing() -> None:
    """Land what has landed already."""


class Conflict(NamedTuple):
    """Where two accesses meet, and what the operation in flight does there."""

    space: str
    address: int
    verb: str


def find_conflict(
    reads: Sequence[Range],
    writes: Sequence[Range],
    other: AsyncOp,
    reduces: int = 0,
) -> Conflict | None:
    """First byte range that an access and `other` share, if one of them writes it."""
    both_reduce = reduces > 0 and other.reduces == reduces
    for mine, theirs, verb in (
        (() if both_reduce else writes, other.writes, "writes"),
        (writes, other.reads, "reads"),
        (reads, other.writes, "writes"),
    ):
        for a in mine:
            for b in theirs:
                if a.overlaps(b):
                    return Conflict(a.space, max(a.start, b.start), verb)
    return None


def closure(ops: Iterable[AsyncOp]) -> set[AsyncOp]:
    """Return the operations and everything in flight that they wait for."""
    seen: set[AsyncOp] = set()
    stack = list(ops)
    while stack:
        op = stack.pop()
        if op not in seen:
            seen.add(op)
            stack.extend(before for before in op.after if not before.landed)
    return seen
