"""text: what the player shows, in words, made without a browser.

The player writes the same in its own tables; this is what a page without scripts, a
terminal and a test read.
"""

from __future__ import annotations

from typing import Any

from fp4ref.frames import FRAMES
from fp4ref.side_by_side import line
from fp4ref.trace import Barrier, Event, Trace


def step_text(trace: Trace, step: int) -> str:
    """Say what happened at a step, and how the barriers stand after it."""
    event = trace.events[step]
    lines = [
        f"Step {step} of {len(trace) - 1}: SM {event.sm}, CTA {event.cta}, "
        f"{event.agent}: {event.operation} ({event.kind})",
        *_details(event),
    ]
    waits = [e for e in trace if e.issued >= 0 and e.issued <= step < e.step]
    for e in waits:
        what = "in flight" if e.kind == "land" else "waiting"
        lines.append(f"  SM {e.sm} {e.agent}: {e.operation} {what} since {e.issued}")
    lines += [f"  {text}" for text in barrier_texts(trace, step)]
    return "\n".join(lines)


def _details(event: Event) -> list[str]:
    lines = []
    if event.frames:
        id = event.frames[-1]
        title = FRAMES[id].title if id in FRAMES else ""
        lines.append(f"  frame {id}: {title}")
    if event.source:
        lines.append(f"  {line(event.source)}")
    if event.operands:
        shown = ", ".join(f"{k} {v}" for k, v in event.operands.items())
        lines.append(f"  operands: {shown}")
    for verb, ranges in (("reads", event.reads), ("writes", event.writes)):
        for r in ranges:
            lines.append(f"  {verb} {r.size:,} bytes of {r.space} at {r.start:#x}")
    return lines


def barrier_texts(trace: Trace, step: int) -> list[str]:
    """Say how each mbarrier stands after `step`: phase, arrivals left, bytes left."""
    last: dict[tuple[str, int], Barrier] = {}
    for event in trace.events[: step + 1]:
        for change in event.barrier:
            last[change.space, change.address] = change
    return [
        f"{b.space} {b.label}: phase {b.after[0]}, {b.after[1]} arrivals left, "
        f"{b.after[2]} bytes left"
        for b in last.values()
    ]


def table_text(head: str, columns: list[str], rows: list[list[Any]]) -> str:
    """Return a sentence and a table with tabs."""
    body = ["\t".join(columns), *("\t".join(map(str, row)) for row in rows)]
    return "\n".join([head, *body])
