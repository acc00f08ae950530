"""hardware_events: what lands in memory, named by where it belongs in the matrices.

A box of A, B, SFA, SFB or C landed in shared memory; scales were copied to TMEM; an
accumulator changed; a box of D left. The names are derived from TMA coordinates and
descriptors alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from fp4ref.errors import InputError
from fp4ref.hardware.mbarrier_unit import NBYTES as BARRIER_NBYTES
from fp4ref.hardware.tcgen05 import CP_NBYTES
from fp4ref.trace import Bytes, Dim3, Event, Range, Trace
from fp4ref.trace.recorded_plan import has_lanes_of_n, is_m_major


class Key(NamedTuple):
    """What a hardware event is about: element offsets in the matrices.

    `m` and `n` are D's, also where the kernel multiplies B by A: what it calls ``A`` is
    then the B that was passed, whose rows are columns of D.
    `tensor` is ``A``, ``B``, ``SFA``, ``SFB``, ``C``, ``D``, ``SFA in TMEM``, ``SFB in
    TMEM`` or ``accumulator``. `k` is the first element of K; `block` counts K=64 blocks
    inside a stage. A number is -1 where there is none. `rank` is the receiving CTA's in
    its cluster: a multicast is one issue and several events.
    """

    tensor: str
    m: int
    n: int
    k: int
    batch: int
    block: int = -1
    rank: int = 0

    def __str__(self) -> str:
        at = {"m": self.m, "n": self.n, "k": self.k}
        at |= {"K-block": self.block, "batch": self.batch}
        where = ", ".join(f"{name} {i}" for name, i in at.items() if i >= 0)
        rank = f", in CTA {self.rank} of its cluster" if self.rank else ""
        return f"{self.tensor} at {where}{rank}" if where else self.tensor


@dataclass(frozen=True, slots=True)
class HardwareEvent:
    """One event: its bytes, and the trace event that made it."""

    key: Key
    event: Event
    data: Bytes


def hardware_events(trace: Trace) -> dict[Key, HardwareEvent]:
    """Return the hardware events of a trace, in order of landing.

    Raises
    ------
    InputError
        The trace has no memory images.
    """
    return _walked(trace).found


def operand_boxes(trace: Trace) -> list[HardwareEvent]:
    """Return every box of A, B, SFA and SFB, in order of landing.

    Wrong coordinates can give two boxes one name; here are both.

    Raises
    ------
    InputError
        The trace has no memory images.
    """
    return _walked(trace).boxes


def _walked(trace: Trace) -> _Walker:
    if not trace.images:
        raise InputError(
            "this trace holds no memory; record it with run(..., trace=True)"
        )
    walker = _Walker(trace)
    for event in trace:
        walker.visit(event)
    return walker


_SCALES = ("SFA", "SFB")
_OF_B = ("B", "SFB", "SFB in TMEM")


class _Box(NamedTuple):
    """A box that landed in the CTA of `rank`."""

    event: Event
    where: Range
    rank: int

    @property
    def tensor(self) -> str:
        """Name of the allocation that it is a box of."""
        return str(self.event.operands["tensor"])

    @property
    def coords(self) -> Sequence[int]:
        """Coordinates in elements, fastest first."""
        coords: Sequence[int] = self.event.operands["coords"]
        return coords


@dataclass(slots=True)
class _Fill:
    """Boxes that belong to one phase of one full barrier, in order of landing."""

    lanes_of_n: bool = False
    landed: list[_Box] = field(default_factory=list)
    blocks: int = 0

    def boxes(self, tensor: str) -> list[_Box]:
        """Return the boxes of a tensor, in the order of their coordinates."""
        own = (box for box in self.landed if box.tensor == tensor)
        return sorted(own, key=lambda box: (list(box.coords[::-1]), box.rank))

    def nth(self, box: _Box) -> int:
        """Return the place of a box among those of its tensor.

        Scales are counted in each CTA by itself: those of B are whole in both CTAs of
        a pair, each of which has half of B.
        """
        boxes = self.boxes(box.tensor)
        if box.tensor in _SCALES:
            boxes = [other for other in boxes if other.rank == box.rank]
        return boxes.index(box)

    def key(
        self, tensor: str, nth: int = 0, block: int = -1, rank: int | None = None
    ) -> Key:
        """Name what belongs to the `nth` box of A, or of B, and to the first of both.

        Scales have the name of the operand whose blocks they scale.
        """
        of_b = tensor in _OF_B
        scaled_in = rank if tensor.startswith("SFA") else None
        a = self._corner("A", 0 if of_b else nth, scaled_in)
        b = self._corner("B", nth * of_b)
        first = a or b or self.landed[0]
        own = (b if of_b else a) or first
        rows = [at.coords[1] if at else -1 for at in (a, b)]
        m, n = reversed(rows) if self.lanes_of_n else rows
        rank = own.rank if rank is None else rank
        return Key(tensor, m, n, own.coords[0], first.coords[-1], block, rank)

    def accumulator(self, rank: int) -> Key:
        """Name what an MMA writes in the CTA of `rank`: that CTA's rows."""
        ranks = [box.rank for box in self.boxes("A")]
        nth = ranks.index(rank) if rank in ranks else 0
        return self.key("accumulator", nth, self.blocks, rank)

    def _corner(self, tensor: str, nth: int, rank: int | None = None) -> _Box | None:
        """Return the `nth` box of a tensor; of those in one CTA, if there are any."""
        boxes = self.boxes(tensor)
        boxes = [box for box in boxes if box.rank == rank] or boxes
        return boxes[min(nth, len(boxes) - 1)] if boxes else None


class _Filled(NamedTuple):
    """Bytes of one box in shared memory, until something else lands there."""

    box: _Box
    nth: int
    fill: _Fill


class _Walker:
    """Replays a trace once and names what lands."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.memory = {s: image.copy() for s, image in trace.images.items()}
        self.found: dict[Key, HardwareEvent] = {}
        self.boxes: list[HardwareEvent] = []
        self._open: dict[tuple[str, int], _Fill] = {}
        self._filled: dict[str, list[_Filled]] = {}
        self._cluster = trace.meta.get("cluster", (1, 1, 1))
        self._m_major = is_m_major(trace.meta)
        self._lanes_of_n = has_lanes_of_n(trace.meta)
        # A multicast may land in a CTA before that CTA's own first event.
        self._ranks = {
            e.sm: rank_in_cluster(e.cta, self._cluster) for e in reversed(trace.events)
        }

    def visit(self, event: Event) -> None:
        """Apply one event."""
        self._ranks[event.sm] = rank_in_cluster(event.cta, self._cluster)
        deltas = self.trace.deltas[event.step]
        for where, delta in zip(event.writes, deltas, strict=True):
            view = self._window(where)
            view ^= delta
        if event.kind == "land":
            name = event.operation
            if name.endswith(".load"):
                self._load(event)
            elif name.endswith(".store") and event.agent == "tma":
                self._store(event)
            elif name == "tcgen05.cp":
                self._copy(event)
            elif name == "tcgen05.mma":
                self._mma(event)
        for change in event.barrier:
            if change.before[0] != change.after[0]:
                self._phase((change.space, change.address))

    def _window(self, where: Range) -> Bytes:
        data, base = self.memory[where.space], self.trace.base[where.space]
        return np.ndarray(
            (where.rows, where.nbytes),
            np.uint8,
            data.data,
            where.start - base,
            (where.pitch, 1),
        )

    def _add(self, key: Key, event: Event, data: Bytes) -> None:
        self.found[key] = HardwareEvent(key, event, data.copy())

    def _rank(self, space: str) -> int:
        """Return the rank of the CTA that has a memory."""
        return self._ranks.get(int(space.lstrip("smetp")), 0)

    def _load(self, event: Event) -> None:
        """Give each box that landed to the barrier that was told."""
        for where in event.writes:
            if where.size > BARRIER_NBYTES:
                told = _barrier_told(event, where.space, self._rank)
                box = _Box(event, where, self._rank(where.space))
                fill = self._open.setdefault(told, _Fill(self._lanes_of_n))
                fill.landed.append(box)

    def _phase(self, barrier: tuple[str, int]) -> None:
        """A phase completed: if loads were credited to it, a stage is full."""
        fill = self._open.pop(barrier, None)
        if fill is None:
            return
        for box in fill.landed:
            nth = fill.nth(box)
            live = self._filled.setdefault(box.where.space, [])
            live[:] = [old for old in live if not old.box.where.overlaps(box.where)]
            live.append(_Filled(box, nth, fill))
            if box.tensor == "C":
                key = self._box_of_d("C", box.coords, box.rank)
            else:
                key = fill.key(box.tensor, nth, rank=box.rank)
            self._add(key, box.event, self._window(box.where))
            if box.tensor != "C":
                self.boxes.append(self.found[key])

    def _find(self, where: Range) -> _Filled | None:
        live = self._filled.get(where.space, [])
        return next((entry for entry in live if entry.box.where.overlaps(where)), None)

    def _copy(self, event: Event) -> None:
        """Name the scales that each CTA of the group copied from its own stage."""
        for read, written in zip(event.reads, event.writes, strict=False):
            source = self._find(read)
            if source is None:
                continue
            block = (read.start - source.box.where.start) // CP_NBYTES
            tensor, rank = f"{source.box.tensor} in TMEM", self._rank(written.space)
            key = source.fill.key(tensor, source.nth, block, rank)
            self._add(key, event, self._window(written))

    def _mma(self, event: Event) -> None:
        """Name the accumulator in each CTA of the group."""
        source = self._find(event.reads[0])
        if source is None:
            return
        fill = source.fill
        for written in event.writes:
            key = fill.accumulator(self._rank(written.space))
            self._add(key, event, self._window(written))
        fill.blocks += 1

    def _store(self, event: Event) -> None:
        rows = [self._window(w).ravel() for w in event.writes]
        if rows:
            key = self._box_of_d(event.operands["tensor"], event.operands["coords"])
            self._add(key, event, np.concatenate(rows).reshape(1, -1))

    def _box_of_d(self, tensor: str, coords: Sequence[int], rank: int = 0) -> Key:
        """Name a box of C or D, which lie alike."""
        fast, slow, batch = coords
        m, n = (fast, slow) if self._m_major else (slow, fast)
        return Key(tensor, m, n, -1, batch, rank=rank)


def rank_in_cluster(cta: Dim3, cluster: Dim3) -> int:
    """Return ``%cluster_ctarank`` of a CTA of the grid, x fastest."""
    x, y, z = (at % extent for at, extent in zip(cta, cluster, strict=True))
    return x + cluster[0] * (y + cluster[1] * z)


def _barrier_told(
    event: Event, space: str, rank: Callable[[str], int]
) -> tuple[str, int]:
    """Return the barrier that was told of what landed in `space`.

    It is in the same CTA, or in the other CTA of the pair.
    """
    own = [b for b in event.barrier if b.space == space]
    pair = [b for b in event.barrier if rank(b.space) // 2 == rank(space) // 2]
    told = (own or pair or list(event.barrier))[0]
    return told.space, told.address
