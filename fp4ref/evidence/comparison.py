"""comparison: align two runs by hardware events and find the first byte that differs.

Runs of different kernels have no frames in common, but they have the same hardware
events: a box of A, B, SFA, SFB or C landed in shared memory; scales were copied to
TMEM; an accumulator changed; a box of D left. Each is named by where it belongs in the
matrices, derived from TMA coordinates and descriptors alone. Steps, agents, stages and
schedules may differ freely.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from fp4ref.arguments import require_instance
from fp4ref.errors import InputError
from fp4ref.execution.runs import Run
from fp4ref.layout import SwizzleMode
from fp4ref.numerics import ScaleFormat, decode_e2m1
from fp4ref.trace import Bytes, Event, Range, Trace

LANE_NBYTES = 2048
TILE_M = 128


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


@dataclass(frozen=True, slots=True)
class Difference:
    """The first byte that differs, with its place in the matrices."""

    key: Key
    coordinates: str
    values: tuple[str, str]
    events: tuple[Event | None, Event | None]

    def __str__(self) -> str:
        lines = [f"{self.key}: {self.coordinates}"]
        for name, value, event in zip("ab", self.values, self.events, strict=True):
            at = (
                f" (step {event.step}, {event.source or event.kernel_source})"
                if event
                else ""
            )
            lines.append(f"  {name}: {value}{at}")
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Outcome of `compare`.

    Attributes
    ----------
    compared
        Hardware events and result arrays that both runs have.
    first_difference
        None when every byte agrees.
    """

    compared: int
    counts: Mapping[str, int]
    first_difference: Difference | None

    @property
    def ok(self) -> bool:
        """Whether every compared byte is equal and no event is missing."""
        return self.first_difference is None

    def report(self) -> str:
        """Say the outcome in words."""
        by_tensor = ", ".join(f"{n} {t}" for t, n in self.counts.items())
        if self.first_difference is None:
            return f"equal: {self.compared} hardware events, every byte ({by_tensor})"
        return f"different\n{self.first_difference}"


def compare(a: Run | Trace, b: Run | Trace) -> Comparison:
    """Compare two runs, or two traces, at every hardware event.

    Raises
    ------
    InputError
        A run without a trace, or two problems of different shape or output.
    """
    traces = [_trace(a, "a"), _trace(b, "b")]
    for name in ("shape", "scale_format"):
        one, other = (t.meta.get(name) for t in traces)
        if one != other:
            raise InputError(
                f"the runs have different {name}: {one} and {other}; compare runs of "
                "one problem"
            )
    outputs = [t.meta.get("config", {}).get("d_format") for t in traces]
    if None not in outputs and outputs[0] != outputs[1]:
        raise InputError(
            f"the runs have different D: {outputs[0]} and {outputs[1]}; compare runs "
            "with one output format"
        )
    events = [hardware_events(t) for t in traces]
    counts: dict[str, int] = {}
    for key, mine in events[0].items():
        theirs = events[1].get(key)
        if theirs is None or theirs.data.shape != mine.data.shape:
            text = "no such event" if theirs is None else f"{theirs.data.size} bytes"
            difference = Difference(
                key,
                "present in one run only" if theirs is None else "sizes differ",
                (f"{mine.data.size} bytes", text),
                (mine.event, theirs.event if theirs else None),
            )
            return Comparison(len(counts), counts, difference)
        unequal = np.argwhere(mine.data != theirs.data)
        if unequal.size:
            row, column = (int(x) for x in unequal[0])
            return Comparison(
                sum(counts.values()),
                counts,
                _describe(traces, mine, theirs, row, column),
            )
        counts[key.tensor] = counts.get(key.tensor, 0) + 1
    for key, theirs in events[1].items():
        if key not in events[0]:
            difference = Difference(
                key,
                "present in one run only",
                ("no such event", f"{theirs.data.size} bytes"),
                (None, theirs.event),
            )
            return Comparison(sum(counts.values()), counts, difference)
    difference_in_result = _compare_allocation(traces, "SFD")
    counts |= {"SFD": 1} if _allocation(traces[0], "SFD") else {}
    return Comparison(sum(counts.values()), counts, difference_in_result)


def _trace(x: object, name: str) -> Trace:
    if isinstance(x, Run):
        if x.trace is None:
            raise InputError(
                f"{name} is a run without a trace; use run(..., trace=True)"
            )
        return x.trace
    return require_instance(x, name, Trace, "Or the Run that fp4ref.run returns")


def _allocation(trace: Trace, name: str) -> Range | None:
    for found, address, nbytes in trace.meta.get("allocations", []):
        if found == name:
            return Range("gmem", address, nbytes)
    return None


def _compare_allocation(traces: list[Trace], name: str) -> Difference | None:
    """Compare an array that is written by ordinary stores, at the end."""
    final = []
    for trace in traces:
        where = _allocation(trace, name)
        if where is None:
            return None
        final.append(trace.at(len(trace) - 1).read(where)[0])
    unequal = np.flatnonzero(final[0] != final[1])
    if not unequal.size:
        return None
    at = int(unequal[0])
    shape = traces[0].meta["shape"]
    blocks_m, atoms_n = -(-shape["m"] // TILE_M), -(-shape["n"] // 64)
    atom, inside = divmod(at, 512)
    block, atom_n = divmod(atom, atoms_n)
    batch, block_m = divmod(block, blocks_m)
    row = block_m * TILE_M + inside // 16 + inside % 16 // 4 * 32
    column = atom_n * 4 + inside % 4
    values = [f"{data[at]:#04x}" for data in final]
    return Difference(
        Key(name, row, column * 16, -1, batch),
        f"byte {at}: scale of row {row}, columns {column * 16} to {column * 16 + 15}",
        (values[0], values[1]),
        (None, None),
    )


def _describe(
    traces: list[Trace], a: HardwareEvent, b: HardwareEvent, row: int, column: int
) -> Difference:
    """Name the element that holds the differing byte."""
    pair = [(a, row, column), (b, row, column)]
    decode = {
        "A": _operand,
        "B": _operand,
        "SFA": _scale,
        "SFB": _scale,
        "SFA in TMEM": _scale_in_tmem,
        "SFB in TMEM": _scale_in_tmem,
        "accumulator": _accumulator,
        "C": _source,
    }.get(a.key.tensor, _plain)
    texts = [decode(traces[i], e, r, c) for i, (e, r, c) in enumerate(pair)]
    return Difference(
        a.key, texts[0][0], (texts[0][1], texts[1][1]), (a.event, b.event)
    )


def _operand(trace: Trace, e: HardwareEvent, row: int, at: int) -> tuple[str, str]:
    """E2M1 codes of A or B, in a swizzled stage."""
    operands: Mapping[str, Any] = e.event.operands
    base = operands["smem"] & 0xFFFFFF
    swizzle = SwizzleMode(operands["swizzle"]).swizzle
    tile_row, byte = divmod(swizzle(base + at) - base, operands["box"][0] // 2)
    value = int(e.data[row, at])
    low, high = decode_e2m1(np.array([value & 15, value >> 4], np.uint8))
    k = operands["coords"][0] + 2 * byte
    return (
        f"row {operands['coords'][1] + tile_row}, k {k} and {k + 1}",
        f"{value:#04x} = codes {value & 15:#x}, {value >> 4:#x} = {low:g}, {high:g}",
    )


def _scale_value(trace: Trace, code: int) -> str:
    scale_format = ScaleFormat[trace.meta.get("scale_format", "UE4M3")]
    value = scale_format.decode(np.array([code], np.uint8))[0]
    return f"{code:#04x} = {value:g}"


def _scale(trace: Trace, e: HardwareEvent, row: int, at: int) -> tuple[str, str]:
    """Scale code in a stage: whole 128x4 atoms."""
    atom, inside = divmod(at, 512)
    m = inside // 16 + inside % 16 // 4 * 32
    block = e.event.operands["coords"][-2] * TILE_M
    k = e.key.k + 64 * atom + 16 * (inside % 4)
    return (
        f"scale of row {block + m}, k {k} to {k + 15}",
        _scale_value(trace, int(e.data[row, at])),
    )


def _scale_in_tmem(
    trace: Trace, e: HardwareEvent, row: int, at: int
) -> tuple[str, str]:
    """Scale code after the copy to TMEM."""
    m = row % 32 + at // 4 * 32
    k = e.key.k + 64 * e.key.block + 16 * (at % 4)
    return (
        f"lane {row}, column +{at // 4}: scale of tile row {m}, k {k} to {k + 15}",
        _scale_value(trace, int(e.data[row, at])),
    )


def _accumulator(trace: Trace, e: HardwareEvent, row: int, at: int) -> tuple[str, str]:
    """float32 in TMEM."""
    word = e.data[row, at // 4 * 4 : at // 4 * 4 + 4]
    bits = int.from_bytes(word.tobytes(), "little")
    value = np.uint32(bits).view(np.float32)
    return (
        f"row {e.key.m + row}, column {e.key.n + at // 4} after k "
        f"{e.key.k + 64 * (e.key.block + 1)}",
        f"{bits:#010x} = {value!r}",
    )


def _source(trace: Trace, e: HardwareEvent, row: int, at: int) -> tuple[str, str]:
    """One element of C, in a swizzled stage."""
    operands: Mapping[str, Any] = e.event.operands
    nbytes = operands["bits"] // 8
    base = operands["smem"] & 0xFFFFFF
    swizzle = SwizzleMode(operands["swizzle"]).swizzle
    byte = swizzle(base + at) - base
    tile_row, column = divmod(byte // nbytes, operands["box"][0])
    first = at // nbytes * nbytes
    bits = int.from_bytes(e.data[row, first : first + nbytes].tobytes(), "little")
    return (
        f"row {e.key.m + tile_row}, column {e.key.n + column}",
        f"{bits:#0{2 * nbytes + 2}x}",
    )


def _plain(trace: Trace, e: HardwareEvent, row: int, at: int) -> tuple[str, str]:
    """Bytes of D, in the order of the event."""
    bits = e.event.operands["bits"]
    where = f"byte {at}"
    for written in e.event.writes:
        if at < written.size:
            tile_row, byte = divmod(at, written.nbytes)
            column = e.key.n + byte * 8 // bits
            where = f"row {e.key.m + tile_row}, column {column}"
            break
        at -= written.size
    return where, f"{int(e.data[row, at]):#04x}"
