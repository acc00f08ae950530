"""text: what the player shows, in words, made without a browser.

The player writes the same in its own tables; this is what a page without scripts, a
terminal and a test read.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from fp4ref.evidence.statement import line
from fp4ref.frames import FRAMES
from fp4ref.hardware.tensor_memory import CELL_NBYTES, LANE_NBYTES
from fp4ref.hardware.tmem import LANES
from fp4ref.trace import Barrier, Event, Range, RecordedPlan, Trace
from fp4ref.viz.sentences import sentence
from fp4ref.viz.strings import say

_ADDRESSES = re.compile(r"desc|taddr|tmem|mbar|smem|address|dst|response|mask")
"""Operands that are read as hexadecimal numbers."""


def step_text(trace: Trace, step: int, view: str = "timeline") -> str:
    """Say what happened at a step, and what the view shows after it."""
    event = trace.events[step]
    head = say(
        "text.step",
        step=step,
        last=len(trace) - 1,
        sm=event.sm,
        cta=event.cta,
        agent=event.agent,
        operation=event.operation,
        kind=event.kind,
    )
    lines = [head, f"  {sentence(trace, step)}", *_details(trace, event)]
    waits = [e for e in trace if e.issued >= 0 and e.issued <= step < e.step]
    for e in waits:
        key = "text.flying" if e.kind == "land" else "text.waiting"
        words = {"sm": e.sm, "agent": e.agent, "what": e.operation, "since": e.issued}
        lines.append(f"  {say(key, **words)}")
    shown = tmem_texts if view in ("tmem", "mma", "scales") else barrier_texts
    lines += [f"  {text}" for text in shown(trace, step)]
    return "\n".join(lines)


def _details(trace: Trace, event: Event) -> list[str]:
    lines = []
    if event.frames:
        id = event.frames[-1]
        title = FRAMES[id].title if id in FRAMES else ""
        lines.append("  " + say("text.frame", id=id, title=title))
    if event.source:
        lines.append(f"  {line(event.source)}")
    if event.operands:
        shown = ", ".join(f"{k} {_operand(k, v)}" for k, v in event.operands.items())
        lines.append("  " + say("text.operands", shown=shown))
    for key, ranges in (("text.reads", event.reads), ("text.writes", event.writes)):
        for r in ranges:
            lines.append(f"  {say(key, n=f'{r.size:,}', where=_place(trace, r))}")
    return lines


def _place(trace: Trace, where: Range) -> str:
    """Name a range; in global memory by the matrix and the offset in it."""
    if where.space == "gmem":
        for name, start, nbytes in trace.meta.get("allocations", ()):
            if start <= where.start < start + nbytes:
                return say("text.offset", name=name, at=f"{where.start - start:#x}")
    return say("text.at", name=where.space, at=f"{where.start:#x}")


def _operand(name: str, value: Any) -> str:
    """Return an operand as a reader of PTX expects it."""
    if _ADDRESSES.search(name) and isinstance(value, int):
        return f"{value:#x}"
    return str(value)


def barrier_texts(trace: Trace, step: int) -> list[str]:
    """Say how each mbarrier stands after `step`: phase, arrivals left, bytes left."""
    last: dict[tuple[str, int], Barrier] = {}
    for event in trace.events[: step + 1]:
        for change in event.barrier:
            last[change.space, change.address] = change
    return [
        say(
            "text.barrier",
            name=f"{b.space} {b.label}",
            phase=b.after[0],
            pending=b.after[1],
            tx=b.after[2],
        )
        for b in last.values()
    ]


def tmem_texts(trace: Trace, step: int) -> list[str]:
    """Say what each part of each TMEM holds after `step`: first word, words written."""
    p = RecordedPlan.of(trace.meta)
    if p is None:
        return []
    state, texts = trace.at(step), []
    for space in sorted(s for s in trace.images if s.startswith("tmem")):
        for part in p.tmem:
            first, nbytes = CELL_NBYTES * part.column, CELL_NBYTES * part.columns
            where = Range(space, first, nbytes, LANES, LANE_NBYTES)
            cells = state.read(where)
            written = state.written[space].reshape(LANES, LANE_NBYTES)
            count = int(written[:, first : first + nbytes].sum()) // CELL_NBYTES
            word = int(cells[0, :CELL_NBYTES].copy().view(np.uint32)[0])
            texts.append(
                say(
                    "text.part" if written[0, first] else "text.part.empty",
                    name=f"{space} {part.name}",
                    first=part.column,
                    last=part.column + part.columns - 1,
                    count=f"{count:,}",
                    size=f"{where.size // CELL_NBYTES:,}",
                    word=f"{word:#010x}",
                )
            )
    return texts


def table_text(head: str, columns: list[str], rows: list[list[Any]]) -> str:
    """Return a sentence and a table with tabs."""
    body = ["\t".join(columns), *("\t".join(map(str, row)) for row in rows)]
    return "\n".join([head, *body])
