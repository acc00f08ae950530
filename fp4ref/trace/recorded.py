"""recorded: events, and the memory at any step.

For every write a `Trace` holds the exclusive-or of old and new bytes. One pass of XORs
therefore moves the memory forward *or* back, and any step can be shown without running
the machine again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fp4ref.arguments import require_integer
from fp4ref.errors import TraceError
from fp4ref.trace.events import Barrier, Bytes, Dim3, Event, Range
from fp4ref.trace.file import FORMAT_VERSION, read_parts, write_parts
from fp4ref.trace.perfetto import to_perfetto

FILE_SUFFIX = ".fp4trace.npz"


@dataclass
class State:
    """Memory at one step: `memory[space]` bytes, and which bytes were ever written."""

    step: int
    memory: dict[str, Bytes]
    base: dict[str, int]
    written: dict[str, NDArray[np.bool_]]

    def read(self, where: Range) -> Bytes:
        """Bytes of `where`, shape (rows, nbytes)."""
        return _window(self.memory[where.space], self.base[where.space], where).copy()


def _window(data: NDArray[Any], base: int, where: Range) -> NDArray[Any]:
    """Return a writable view (rows, nbytes) of `where` in a flat array."""
    size = data.itemsize
    return np.ndarray(
        (where.rows, where.nbytes),
        data.dtype,
        data.data,
        (where.start - base) * size,
        (where.pitch * size, size),
    )


@dataclass
class Trace:
    """Events of one run, with enough to show memory at any step.

    Attributes
    ----------
    events
        In order of `Event.step`.
    deltas
        For each event, one array per write: old XOR new, shape (rows, nbytes).
    images
        Memory before step 0, per space.
    base
        Address of byte 0 of each image.
    meta
        What ran: configuration, shapes, backend, schedule. JSON values only.
    """

    events: list[Event] = field(default_factory=list)
    deltas: list[tuple[Bytes, ...]] = field(default_factory=list)
    images: dict[str, Bytes] = field(default_factory=dict)
    base: dict[str, int] = field(default_factory=dict)
    meta: dict[str, Any] = field(default_factory=dict)
    _cursor: State | None = field(default=None, repr=False, compare=False)
    _first_write: dict[str, NDArray[np.int64]] | None = field(
        default=None, repr=False, compare=False
    )

    def __len__(self) -> int:
        return len(self.events)

    def __iter__(self) -> Iterator[Event]:
        return iter(self.events)

    def select(
        self,
        *,
        frame: str | None = None,
        agent: str | None = None,
        operation: str | None = None,
        cta: Dim3 | None = None,
    ) -> list[Event]:
        """Events that match every given field; `operation` matches by prefix."""
        return [
            e
            for e in self.events
            if (frame is None or frame in e.frames)
            and (agent is None or e.agent == agent)
            and (operation is None or e.operation.startswith(operation))
            and (cta is None or e.cta == cta)
        ]

    def at(self, step: int) -> State:
        """Memory just *after* event `step`; -1 is the memory before the first event.

        Walks from the step last shown, forward or back, so neighbouring steps are
        cheap. The returned state is a copy.

        Raises
        ------
        TraceError
            `step` is outside -1 .. len - 1.
        """
        step = require_integer(step, "step", error=TraceError)
        if not -1 <= step < len(self.events):
            raise TraceError(
                f"step {step} is outside this trace; steps run from -1 (before the "
                f"first event) to {len(self.events) - 1}"
            )
        if self._cursor is None:
            memory = {s: image.copy() for s, image in self.images.items()}
            self._cursor = State(-1, memory, self.base, {})
        cursor = self._cursor
        forward = range(cursor.step + 1, step + 1)
        back = range(cursor.step, step, -1)
        for i in forward if step > cursor.step else back:
            for where, delta in zip(self.events[i].writes, self.deltas[i], strict=True):
                space = where.space
                view = _window(cursor.memory[space], self.base[space], where)
                view ^= delta
        cursor.step = step
        return State(
            step,
            {s: m.copy() for s, m in cursor.memory.items()},
            self.base,
            {s: first <= step for s, first in self._first_writes().items()},
        )

    def _first_writes(self) -> dict[str, NDArray[np.int64]]:
        """Step at which each byte is first written; before step 0 in global memory."""
        if self._first_write is None:
            never = np.iinfo(np.int64).max
            self._first_write = {
                s: np.full(image.size, -1 if s == "gmem" else never)
                for s, image in self.images.items()
            }
            for event in self.events:
                for where in event.writes:
                    first = self._first_write[where.space]
                    view = _window(first, self.base[where.space], where)
                    np.minimum(view, event.step, out=view)
        return self._first_write

    def save(self, path: str | Path) -> Path:
        """Write one compressed file; returns its path.

        Raises
        ------
        TraceError
            The folder does not exist or cannot be written.
        """
        path = Path(path)
        if not path.name.endswith(FILE_SUFFIX):
            path = path.with_name(path.name + FILE_SUFFIX)
        header = {
            "version": FORMAT_VERSION,
            "meta": self.meta,
            "base": self.base,
            "events": [_values(e) for e in self.events],
        }
        flat = [d.ravel() for deltas in self.deltas for d in deltas]
        payload = np.concatenate(flat) if flat else np.empty(0, np.uint8)
        write_parts(path, header, payload, self.images)
        return path

    @classmethod
    def load(cls, path: str | Path) -> Trace:
        """Read a file that `save` wrote.

        Raises
        ------
        TraceError
            The file is missing, damaged, or of another format version.
        """
        header, payload, images = read_parts(path)
        events = [_event(d) for d in header["events"]]
        deltas, at = [], 0
        for event in events:
            parts = []
            for where in event.writes:
                part = payload[at : at + where.size]
                if part.size != where.size:
                    raise TraceError(f"{path} is cut short; make the trace again")
                parts.append(part.reshape(where.rows, where.nbytes))
                at += where.size
            deltas.append(tuple(parts))
        if at != payload.size:
            raise TraceError(f"{path} has bytes of no event; make the trace again")
        return cls(events, deltas, images, header["base"], header["meta"])

    def to_perfetto(self) -> dict[str, Any]:
        """Return the trace in Perfetto's (Chrome's) JSON.

        Its microseconds are the model's where the trace has times, else steps.
        Asynchronous work is drawn from issue to landing on its unit's track, with an
        arrow to a landing from each one that it waited for.
        """
        return to_perfetto(self.events, self.meta)


def _values(event: Event) -> dict[str, Any]:
    """Return an event as JSON has it; without a clock it has no times."""
    values = asdict(event)
    if event.start is None:
        del values["start"], values["end"]
    return values


def _event(d: dict[str, Any]) -> Event:
    """Rebuild an event from JSON, where tuples came back as lists."""
    return Event(
        **d
        | {
            "cta": tuple(d["cta"]),
            "reads": tuple(Range(*r) for r in d["reads"]),
            "writes": tuple(Range(*r) for r in d["writes"]),
            "frames": tuple(d["frames"]),
            "after": tuple(d.get("after", ())),
            "barrier": tuple(
                Barrier(b[0], b[1], b[2], _counts(b[3]), _counts(b[4]))
                for b in d["barrier"]
            ),
        }
    )


def _counts(values: Sequence[int]) -> tuple[int, int, int]:
    phase, pending, tx_count = values
    return phase, pending, tx_count
