"""packet: one trace as the bytes that the player reads.

A packet is deflated: four bytes of length, a JSON header, and a payload. The header
holds the events by column and every table they point into; the payload holds the
bytes that events wrote. Two kinds of write carry no payload:

* an accumulator written by ``tcgen05.mma``: the player computes it from the operands
  in its own memory, and a checksum in the header says whether it got the same bits;
* a write of a tile beyond the ones asked for: the player shows it as not kept.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fp4ref.arguments import require_integer
from fp4ref.errors import InputError
from fp4ref.evidence.addresses import cutlass, ptx, section_of
from fp4ref.evidence.statement import line
from fp4ref.frames import FRAMES
from fp4ref.trace import Event, Range, RecordedPlan, Trace
from fp4ref.trace.timeline import overlap, rows, shares
from fp4ref.viz.milestones import milestones
from fp4ref.viz.sentences import sentences

PACKET_VERSION = 1
KINDS = ("sync", "issue", "land", "note")
NOT_KEPT = -2
COMPUTED = -1
SWIZZLE_128B = 2
"""Layout field of a matrix descriptor."""
SMALL_NBYTES = 16
"""Barriers, answers and pointers: kept for every tile."""

Header = dict[str, Any]


def shares_in_words(trace: Trace) -> dict[str, str] | None:
    """Return the mean shares of the steady states as percentages, of a timed trace."""
    if not trace.events or any(event.end is None for event in trace):
        return None
    found = shares(trace)
    names = ("both", "loads", "mmas", "neither")
    return {
        name: f"{sum(getattr(each, name) for each in found) / len(found):.0%}"
        for name in names
        if found
    } or None


class Table:
    """Distinct values in order of first use, and the number of each."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._number: dict[Hashable, int] = {}

    def number(self, value: Any, key: Hashable | None = None) -> int:
        """Return the number of `value`; `key` stands for it if it has no hash."""
        key = value if key is None else key
        if key not in self._number:
            self._number[key] = len(self.values)
            self.values.append(value)
        return self._number[key]


def pack(header: Mapping[str, Any], payload: bytes = b"") -> bytes:
    """Deflate a header and a payload."""
    text = json.dumps(header, separators=(",", ":"), default=_plain).encode()
    return zlib.compress(struct.pack("<I", len(text)) + text + payload, 9)


def unpack(packet: bytes) -> tuple[Header, bytes]:
    """Return header and payload of a packet."""
    raw = zlib.decompress(packet)
    (length,) = struct.unpack_from("<I", raw)
    header: Header = json.loads(raw[4 : 4 + length])
    return header, raw[4 + length :]


def _plain(value: Any) -> Any:
    """Make JSON of a NumPy number or array."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError(f"a packet cannot hold a {type(value).__name__}")


class Payload:
    """The bytes that events wrote; those that were written before are kept once."""

    def __init__(self) -> None:
        self.data = bytearray()
        self._at: dict[bytes, int] = {}

    def place(self, data: bytes) -> int:
        """Return where the bytes lie."""
        if data not in self._at:
            self._at[data] = len(self.data)
            self.data += data
        return self._at[data]


def trace_packet(
    trace: Trace,
    *,
    sms: Iterable[int] = (0,),
    tiles: int = 2,
    payload: Payload | None = None,
) -> tuple[Header, bytes]:
    """Turn a trace into a header and a payload.

    Parameters
    ----------
    sms
        SMs whose memory is kept.
    tiles
        How many tiles of each of these SMs keep their bytes.
    payload
        What other traces of the same page wrote; a new one if None.

    Raises
    ------
    InputError
        The trace is empty, or an SM is not in it.
    """
    tiles = require_integer(tiles, "tiles", 0)
    if not trace.events:
        raise InputError("this trace has no events; there is nothing to step through")
    found = {e.sm for e in trace}
    chosen = sorted(set(sms))
    if missing := [sm for sm in chosen if sm not in found]:
        raise InputError(
            f"sms: SM {missing[0]} did nothing in this trace; SMs with events: "
            f"{', '.join(map(str, sorted(found)))}"
        )
    spaces = [f"{kind}{sm}" for sm in chosen for kind in ("smem", "tmem")]
    there = [space for space in spaces if space in trace.images]
    writer = _Writer(trace, there, tiles, payload or Payload())
    columns, tables = writer.columns()
    header: Header = {
        "version": PACKET_VERSION,
        "meta": {k: v for k, v in trace.meta.items() if k != "allocations"},
        "spaces": {
            s: {"base": trace.base[s], "nbytes": int(trace.images[s].size)}
            for s in writer.spaces
        },
        "columns": columns,
        "tables": tables,
        "checksums": writer.checksums,
        "maps": memory_maps(RecordedPlan.of(trace.meta)),
        "frames": {
            id: FRAMES[id].title
            for id in sorted({f for e in trace for f in e.frames})
            if id in FRAMES
        },
        "sources": sources(trace),
        "overlap": overlap(trace),
        "shares": shares_in_words(trace),
        "milestones": milestones(trace),
        "kept": writer.kept(),
    }
    return header, bytes(writer.payload.data)


def sources(trace: Trace) -> Header:
    """Return names and addresses: by operation of PTX, by frame of CUTLASS."""
    operations = {event.operation: section_of(event.operation) for event in trace}
    frames = {event.frames[-1] for event in trace if event.frames}
    files = {id: FRAMES[id].cutlass for id in sorted(frames) if id in FRAMES}
    return {
        "ptx": {name: [to, ptx(to)] for name, to in operations.items() if to},
        "cutlass": {id: [path, cutlass(path)] for id, path in files.items() if path},
    }


@dataclass
class _Writer:
    """Replays a trace once and collects what the events wrote."""

    trace: Trace
    spaces: list[str]
    tiles: int
    payload: Payload
    checksums: dict[int, int] = field(default_factory=dict)
    large: list[tuple[int, bool]] = field(default_factory=list)
    """Steps of writes of more than a few bytes, and whether these are kept."""

    def columns(self) -> tuple[Header, Header]:
        """Return the events by column, and the tables they point into."""
        tables = {
            name: Table()
            for name in ("cta", "agent", "operation", "frames", "source", "operands")
        }
        ranges, labels = Table(), Table()
        columns: dict[str, list[Any]] = {
            name: [] for name in ("sm", "kind", "issued", *tables)
        }
        columns["row"] = rows(self.trace)
        if all(event.end is not None for event in self.trace):
            columns["start"] = [round(event.start or 0, 1) for event in self.trace]
            columns["end"] = [round(event.end or 0, 1) for event in self.trace]
        told = Table()
        columns["words"] = [told.number(words) for words in sentences(self.trace)]
        columns |= {"reads": [], "writes": [], "barrier": []}
        count = _TileCount(self.trace)
        memory = {s: self.trace.images[s].copy() for s in self.spaces}
        for event in self.trace:
            columns["sm"].append(event.sm)
            columns["kind"].append(KINDS.index(event.kind))
            columns["issued"].append(event.issued)
            for name, table in tables.items():
                value = getattr(event, name)
                key = value
                if name == "operands":
                    key, value = repr(value), _json_numbers(value)
                columns[name].append(table.number(value, key))
            columns["reads"].append(
                [ranges.number(self._place(r)) for r in event.reads]
            )
            kept = count.tile_of(event) < self.tiles
            columns["writes"].append(
                [
                    [ranges.number(self._place(w)), self._write(event, i, memory, kept)]
                    for i, w in enumerate(event.writes)
                ]
            )
            columns["barrier"].append(
                [
                    [labels.number((b.space, b.address, b.label)), *b.after]
                    for b in event.barrier
                ]
            )
        texts = [line(place).text if place else "" for place in tables["source"].values]
        return columns, {
            **{name: table.values for name, table in tables.items()},
            "source_text": texts,
            "words": told.values,
            "range": ranges.values,
            "barrier": labels.values,
        }

    def kept(self) -> list[list[int]]:
        """First and last steps between which all bytes of large writes are kept."""
        runs: list[list[int]] = []
        for step, known in self.large:
            if known and runs and runs[-1][2]:
                runs[-1][1] = step
            else:
                runs.append([step, step, int(known)])
        return [[first, last] for first, last, known in runs if known]

    def _place(self, where: Range) -> tuple[str, int, int, int, int]:
        """Return a range; global addresses change from run to run, offsets do not."""
        start = where.start
        if where.space == "gmem":
            start -= self.trace.base["gmem"]
        return where.space, start, where.nbytes, where.rows, where.pitch

    def _write(
        self, event: Event, i: int, memory: dict[str, NDArray[np.uint8]], kept: bool
    ) -> int:
        """Apply one write; return its place in the payload, or why it has none."""
        where = event.writes[i]
        if where.space not in memory:
            return NOT_KEPT
        data = memory[where.space]
        view = np.ndarray(
            (where.rows, where.nbytes),
            np.uint8,
            data.data,
            where.start - self.trace.base[where.space],
            (where.pitch, 1),
        )
        view ^= self.trace.deltas[event.step][i]
        if where.size > SMALL_NBYTES:
            self.large.append((event.step, kept))
            if not kept:
                return NOT_KEPT
        if event.operation == "tcgen05.mma" and _player_computes(event):
            self.checksums[event.step] = zlib.adler32(view.tobytes())
            return COMPUTED
        return self.payload.place(view.tobytes())


def _json_numbers(operands: Mapping[str, Any]) -> Header:
    """Write integers that a script's numbers cannot hold as hexadecimal text."""
    return {
        name: hex(value) if isinstance(value, int) and value > 2**53 else value
        for name, value in operands.items()
    }


def _player_computes(event: Event) -> bool:
    """Whether the player's arithmetic covers this MMA."""
    operands = event.operands
    layouts = {int(operands.get(name, 0)) >> 61 for name in ("a_desc", "b_desc")}
    form = (operands.get("kind"), operands.get("scale_vec"))
    return form == ("mxf4nvf4", "4X") and layouts == {SWIZZLE_128B}


class _TileCount:
    """Tells which of an SM's tiles an event belongs to, by counting what was issued.

    Work lands in any order, also across the border of two tiles.
    """

    def __init__(self, trace: Trace) -> None:
        self._tile: dict[int, int] = {}
        self._per_tile = _work_of_a_tile(trace)
        writers = [e for e in trace if e.kind != "issue" and e.writes]
        seen: dict[tuple[int, str], int] = {}
        for event in sorted(writers, key=_started):
            name = str(event.operands.get("tensor", event.operation))
            if each := self._per_tile.get(name):
                count = seen.get((event.sm, name), 0)
                seen[event.sm, name] = count + 1
                self._tile[event.step] = count // each

    def tile_of(self, event: Event) -> int:
        """Return the ordinal of the tile on its SM; 0 for what belongs to none."""
        return self._tile.get(event.step, 0)


def _started(event: Event) -> int:
    return event.issued if event.issued >= 0 else event.step


def _work_of_a_tile(trace: Trace) -> dict[str, int]:
    """Count what writes for one tile, by tensor or operation; empty without a plan."""
    p = RecordedPlan.of(trace.meta)
    if p is None:
        return {}
    k_tiles = p.k_tiles(trace.meta["shape"]["k"])
    return {
        **dict.fromkeys(("A", "B", "SFA", "SFB"), k_tiles),
        "C": p.subtiles,
        "tcgen05.cp": k_tiles * p.scale_copies,
        "tcgen05.mma": k_tiles * p.k_blocks,
        "st.shared": p.warps_of("EPILOGUE") * p.subtiles,
    }


def memory_maps(p: RecordedPlan | None) -> Header:
    """Say what lies where in shared memory and in TMEM, if the trace has a plan."""
    if p is None:
        return {}
    return {
        "smem": [part._asdict() for part in p.smem],
        "tmem": [part._asdict() for part in p.tmem],
    }
