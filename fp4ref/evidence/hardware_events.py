"""hardware_events: what lands in memory, named by where it belongs in the matrices.

A box of A, B, SFA, SFB or C landed in shared memory; scales were copied to TMEM; an
accumulator changed; a box of D left. The names are derived from TMA coordinates and
descriptors alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from fp4ref.errors import InputError
from fp4ref.hardware.mbarrier_unit import NBYTES as BARRIER_NBYTES
from fp4ref.hardware.tcgen05 import CP_NBYTES
from fp4ref.trace import Bytes, Event, Range, Trace


class Key(NamedTuple):
    """What a hardware event is about: element offsets in the matrices.

    `tensor` is ``A``, ``B``, ``SFA``, ``SFB``, ``C``, ``D``, ``SFA in TMEM``, ``SFB in
    TMEM`` or ``accumulator``. `k` is the first element of K; `block` counts K=64 blocks
    inside a stage, or is -1.
    """

    tensor: str
    m: int
    n: int
    k: int
    batch: int
    block: int = -1

    def __str__(self) -> str:
        where = f"m {self.m}, n {self.n}" if self.n >= 0 else f"m {self.m}"
        k = f", k {self.k}" if self.k >= 0 else ""
        block = f", K-block {self.block}" if self.block >= 0 else ""
        return f"{self.tensor} at {where}{k}{block}, batch {self.batch}"


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
    if not trace.images:
        raise InputError(
            "this trace holds no memory; record it with run(..., trace=True)"
        )
    walker = _Walker(trace)
    for event in trace:
        walker.visit(event)
    return walker.found


_OF_B = ("B", "SFB", "SFB in TMEM")


@dataclass(slots=True)
class _Fill:
    """Loads that belong to one phase of one full barrier, in order of landing."""

    loads: list[Event] = field(default_factory=list)
    blocks: int = 0

    def boxes(self, tensor: str) -> list[Event]:
        """Return the loads of a tensor, in the order of their boxes."""
        own = (e for e in self.loads if e.operands["tensor"] == tensor)
        return sorted(own, key=lambda e: list(e.operands["coords"][::-1]))

    def key(self, tensor: str, nth: int = 0, block: int = -1) -> Key:
        """Name what belongs to the `nth` box of A, or of B, and to the first of both.

        Scales have the name of the operand whose blocks they scale.
        """
        of_b = tensor in _OF_B
        a, b = self._corner("A", 0 if of_b else nth), self._corner("B", nth * of_b)
        first = a or b or self.loads[0].operands["coords"]
        own = (b if of_b else a) or first
        m, n = (at[1] if at else -1 for at in (a, b))
        return Key(tensor, m, n, own[0], first[-1], block)

    def _corner(self, tensor: str, nth: int) -> Sequence[int] | None:
        boxes = self.boxes(tensor)
        if not boxes:
            return None
        corner: Sequence[int] = boxes[min(nth, len(boxes) - 1)].operands["coords"]
        return corner


class _Filled(NamedTuple):
    """Bytes of one box in shared memory, until something else lands there."""

    where: Range
    tensor: str
    nth: int
    fill: _Fill


class _Walker:
    """Replays a trace once and names what lands."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.memory = {s: image.copy() for s, image in trace.images.items()}
        self.found: dict[Key, HardwareEvent] = {}
        self._open: dict[tuple[str, int], _Fill] = {}
        self._filled: dict[str, list[_Filled]] = {}

    def visit(self, event: Event) -> None:
        """Apply one event."""
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

    def _load(self, event: Event) -> None:
        for change in event.barrier:
            fill = self._open.setdefault((change.space, change.address), _Fill())
            fill.loads.append(event)

    def _phase(self, barrier: tuple[str, int]) -> None:
        """A phase completed: if loads were credited to it, a stage is full."""
        fill = self._open.pop(barrier, None)
        if fill is None:
            return
        for event in fill.loads:
            tensor = event.operands["tensor"]
            nth = fill.boxes(tensor).index(event)
            where = _landed(event, barrier[0])
            live = self._filled.setdefault(where.space, [])
            live[:] = [entry for entry in live if not entry.where.overlaps(where)]
            live.append(_Filled(where, tensor, nth, fill))
            if tensor == "C":
                n, m, batch = event.operands["coords"]
                key = Key("C", m, n, -1, batch)
            else:
                key = fill.key(tensor, nth)
            self._add(key, event, self._window(where))

    def _find(self, where: Range) -> _Filled | None:
        live = self._filled.get(where.space, [])
        return next((entry for entry in live if entry.where.overlaps(where)), None)

    def _copy(self, event: Event) -> None:
        source = self._find(event.reads[0])
        if source is None:
            return
        block = (event.reads[0].start - source.where.start) // CP_NBYTES
        key = source.fill.key(f"{source.tensor} in TMEM", source.nth, block)
        self._add(key, event, self._window(event.writes[0]))

    def _mma(self, event: Event) -> None:
        source = self._find(event.reads[0])
        if source is None:
            return
        fill = source.fill
        key = fill.key("accumulator", block=fill.blocks)
        fill.blocks += 1
        self._add(key, event, self._window(event.writes[0]))

    def _store(self, event: Event) -> None:
        n, m, batch = event.operands["coords"]
        rows = [self._window(w).ravel() for w in event.writes]
        if rows:
            key = Key(event.operands["tensor"], m, n, -1, batch)
            self._add(key, event, np.concatenate(rows).reshape(1, -1))


def _landed(event: Event, space: str) -> Range:
    """Return what a load wrote where its barrier is; or else in the CTA's peer.

    A multicast writes to several CTAs, each with its barrier; a load of a CTA pair may
    tell the barrier of its leader.
    """
    data = [w for w in event.writes if w.size > BARRIER_NBYTES]
    return next((w for w in data if w.space == space), data[0])
