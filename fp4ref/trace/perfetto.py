"""perfetto: a trace in Perfetto's (Chrome's) JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from fp4ref.trace.events import Event


def to_perfetto(events: Sequence[Event], meta: dict[str, Any]) -> dict[str, Any]:
    """Return one row for each event.

    With times its microseconds are those of the model, or clocks if the trace does not
    say how long one is; else a step is 1 microsecond.
    Asynchronous work is drawn from issue to landing on its unit's track, with an arrow
    to a landing from each one that it waited for.
    """
    agents = sorted({(e.sm, e.agent) for e in events})
    tid = {key: i for i, key in enumerate(agents)}
    rows: list[dict[str, Any]] = []
    for sm, agent in agents:
        ids = {"ph": "M", "pid": sm, "tid": tid[sm, agent]}
        rows.append(ids | {"name": "thread_name", "args": {"name": agent}})
        rows.append(ids | {"name": "process_name", "args": {"name": f"SM {sm}"}})
    for e in events:
        begin, duration = _span(e, events, meta)
        args = {"step": e.step, "kind": e.kind, "source": e.source, **e.operands}
        rows.append(
            {
                "name": e.operation,
                "cat": ",".join(e.frames),
                "ph": "X",
                "ts": begin,
                "dur": duration,
                "pid": e.sm,
                "tid": tid[e.sm, e.agent],
                "args": args,
            }
        )
    rows += _arrows(events, tid, meta)
    return {"traceEvents": rows, "displayTimeUnit": "ns", "otherData": meta}


def _span(
    event: Event, events: Sequence[Event], meta: dict[str, Any]
) -> tuple[float, float]:
    """Return where an event begins and how long it is, in microseconds."""
    if event.start is None or event.end is None:
        begin = event.issued if event.issued >= 0 else event.step
        return begin, event.step - begin + 1
    start: float | None = event.start
    if event.kind == "land" and event.issued >= 0:
        start = events[event.issued].end
    start = event.start if start is None else start
    timing = meta.get("timing")
    scale = 1e6 / timing["clock"] if timing else 1.0
    return start * scale, (event.end - start) * scale


def _arrows(
    events: Sequence[Event], tid: dict[tuple[int, str], int], meta: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    """Start and end of an arrow for each pair of landings of which one had to wait."""
    pairs = [(b, e.step) for e in events if e.kind == "land" for b in e.after]
    for number, ends in enumerate(pairs):
        for ph, step in zip("sf", ends, strict=True):
            e = events[step]
            # An end binds to the span around it, not to the next one.
            binding = {"bp": "e"} if ph == "f" else {}
            begin, duration = _span(e, events, meta)
            ts: float = step if e.end is None else begin + duration
            ids = {"ts": ts, "pid": e.sm, "tid": tid[e.sm, e.agent]}
            names = {"name": "after", "cat": "after", "ph": ph, "id": number}
            yield names | ids | binding
