"""hardware_events: what lands in memory, named by where it belongs in the matrices.

A box of A, B, SFA, SFB or C landed in shared memory; scales were copied to TMEM; an
accumulator changed; a box of D left. The names are derived from TMA coordinates and
descriptors alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from fp4ref.errors import InputError
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


@dataclass(slots=True)
class _Fill:
    """Loads that belong to one phase of one full barrier."""

    loads: dict[str, Event] = field(default_factory=dict)
    blocks: int = 0

    def key(self, tensor: str, block: int = -1) -> Key:
        a = self.loads.get("A")
        b = self.loads.get("B")
        at = (a or b or next(iter(self.loads.values()))).operands["coords"]
        m = a.operands["coords"][1] if a else -1
        n = b.operands["coords"][1] if b else -1
        return Key(tensor, m, n, at[0], at[-1], block)


class _Walker:
    """Replays a trace once and names what lands."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.memory = {s: image.copy() for s, image in trace.images.items()}
        self.found: dict[Key, HardwareEvent] = {}
        self._open: dict[tuple[str, int], _Fill] = {}
        self._filled: dict[str, list[tuple[Range, str, _Fill]]] = {}

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
            fill.loads[event.operands["tensor"]] = event

    def _phase(self, barrier: tuple[str, int]) -> None:
        """A phase completed: if loads were credited to it, a stage is full."""
        fill = self._open.pop(barrier, None)
        if fill is None:
            return
        for tensor, event in fill.loads.items():
            where = next(
                w for w in event.writes if w.space == barrier[0] and w.size > 8
            )
            live = self._filled.setdefault(where.space, [])
            live[:] = [entry for entry in live if not entry[0].overlaps(where)]
            live.append((where, tensor, fill))
            if tensor == "C":
                n, m, batch = event.operands["coords"]
                key = Key("C", m, n, -1, batch)
            else:
                key = fill.key(tensor)
            self._add(key, event, self._window(where))

    def _find(self, where: Range) -> tuple[Range, str, _Fill] | None:
        live = self._filled.get(where.space, [])
        return next((entry for entry in live if entry[0].overlaps(where)), None)

    def _copy(self, event: Event) -> None:
        source = self._find(event.reads[0])
        if source is None:
            return
        where, tensor, fill = source
        block = (event.reads[0].start - where.start) // 512
        self._add(
            fill.key(f"{tensor} in TMEM", block), event, self._window(event.writes[0])
        )

    def _mma(self, event: Event) -> None:
        source = self._find(event.reads[0])
        if source is None:
            return
        fill = source[2]
        key = fill.key("accumulator", fill.blocks)
        fill.blocks += 1
        self._add(key, event, self._window(event.writes[0]))

    def _store(self, event: Event) -> None:
        n, m, batch = event.operands["coords"]
        rows = [self._window(w).ravel() for w in event.writes]
        if rows:
            key = Key(event.operands["tensor"], m, n, -1, batch)
            self._add(key, event, np.concatenate(rows).reshape(1, -1))
