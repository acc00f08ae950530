"""picture: who worked when, in the walk's report: as characters, or drawn."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from fp4ref.trace import Event, RecordedPlan, Trace
from fp4ref.trace.timeline import (
    COMMIT,
    extent,
    is_load,
    is_mma,
    length,
    overlap,
    rows,
    shares,
)

ROLES = {
    "MMA": "MMA",
    "SCHEDULER": "tile scheduler",
    "MAINLOOP_LOAD": "load A, B, SFA, SFB",
    "EPILOGUE_LOAD": "load C",
    "EPILOGUE": "epilogue",
}
"""What the warps of each role of the plan do."""

UNITS: dict[str, tuple[str, Callable[[Event], bool]]] = {
    "TMA loads": ("#8ec5a8", is_load),
    "TMA stores": ("#8ec5a8", lambda e: e.agent == "tma" and not is_load(e)),
    "tensor core, MMAs": ("#f2b38f", is_mma),
    "tensor core, copies": ("#d9b8e8", lambda e: e.operation == "tcgen05.cp"),
    "tensor core, commits": ("#ff9aa5", lambda e: e.operation == COMMIT),
    "TMEM loads": ("#a9dfe6", lambda e: e.agent == "tmem"),
    "launch control": ("#e5e07b", lambda e: e.agent == "clc"),
}
"""Rows for work in flight: its colour, and which landings belong to each."""

WARP_COLOUR = "#c9ced6"
MOST_COLUMNS = 60
NAME_COLUMNS = 27
OTHER_COLUMNS = 44
"""Width of the timeline, of the names, and of the names and counts together."""

LEVELS = " .:-=+*#"
"""Marks of the timeline, from idle to busy: readable without colour."""
LINE = " _"
"""Marks of commits in flight: a thin line, since a commit only waits."""
MOST_SMS = 2
"""SMs in the timeline."""

LETTER, LINE_HEIGHT = 12.2, 24.4
"""Pixels of a character in a picture that Rich makes."""
BAND = 20
"""Height of the bars of one row; the rest of a line is a gap."""
WARP_HEIGHT = 10.0
COMMIT_HEIGHT = 1.5


@dataclass(frozen=True)
class Row:
    """One row of one SM: its events, and whether each is in flight for a while."""

    name: str
    colour: str
    events: list[Event]
    in_flight: bool

    @property
    def count(self) -> str:
        """Say how much happened."""
        if self.in_flight:
            return f"{len(self.events)} landed"
        return f"{len(self.events)} event" + "s" * (len(self.events) != 1)

    def extent(self, trace: Trace, event: Event) -> tuple[float, float]:
        """Where an event lies on the axis; of a wait only its end is drawn."""
        begin, end = extent(trace, event)
        waited = not self.in_flight and event.issued >= 0
        return (end - 1 if waited else begin, end)


def rows_of(trace: Trace, sm: int) -> Iterator[Row]:
    """Yield the rows of an SM that have an event: its warps, then its units."""
    mine = [e for e in trace if e.sm == sm]
    p = RecordedPlan.of(trace.meta)
    for agent in _warps(mine):
        role = p.roles.get(agent, "") if p else ""
        events = [e for e in mine if e.agent == agent]
        name = f"{agent} {ROLES.get(role, role)}".rstrip()
        yield Row(name, WARP_COLOUR, events, False)
    for name, (colour, chosen) in UNITS.items():
        if events := [e for e in mine if e.issued >= 0 and chosen(e)]:
            yield Row(name, colour, events, True)


def _warps(events: list[Event]) -> list[str]:
    """Return the warps that have an event, in the order of their numbers."""
    warps = {e.agent for e in events if re.fullmatch(r"warp\d+", e.agent)}
    return sorted(warps, key=lambda agent: int(agent.removeprefix("warp")))


def shown_sms(trace: Trace) -> list[int]:
    """Return the SMs in the timeline."""
    return sorted({e.sm for e in trace})[:MOST_SMS]


def columns_of(width: int) -> int:
    """Return how many columns of a console of `width` the timeline has."""
    return max(10, min(MOST_COLUMNS, width - OTHER_COLUMNS))


def timeline(trace: Trace, width: int, *, drawn: bool = False) -> RenderableType:
    """Return rows of each SM over the run's events; blank if bars are `drawn` later."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True, min_width=NAME_COLUMNS - 2)
    table.add_column(no_wrap=True)
    table.add_column(justify="right", style="dim", no_wrap=True)
    columns = columns_of(width)
    for sm in shown_sms(trace):
        table.add_row(Text(f"SM {sm}", style="bold"))
        for row in rows_of(trace, sm):
            marks = " " * columns if drawn else _marks(trace, row, columns)
            table.add_row(row.name, Text(marks), row.count)
    return Group(Text(_legend(trace, drawn), style="dim"), table)


def _legend(trace: Trace, drawn: bool) -> str:
    sms, steps = sorted({e.sm for e in trace}), f"{len(trace):,}"
    part = f", SMs {sms[0]} and {sms[1]} of {len(sms)}" if len(sms) > MOST_SMS else ""
    how = (
        "Warps: events; units: a bar for each piece of work, from issue to landing; "
        "commits are thin lines."
        if drawn
        else "Warps: events; units: work in flight. Each row from idle (blank) to its "
        "own busiest (#); ___ is a commit in flight."
    )
    if all(event.end is not None for event in trace):
        return (
            f"{length(trace):,.0f} clocks of the timing model from left to right"
            f"{part}. {how} {overlap_words(trace)}."
        )
    return (
        f"{steps} events from left to right{part}. {how} Loads and MMAs of one SM "
        f"overlap at {overlap(trace):,} of {steps} steps."
    )


def overlap_words(trace: Trace) -> str:
    """Say how much of the steady state has loads and MMAs in flight, of a timed trace.

    The mean of the SMs that multiply; an SM is steady from its first MMA to its last.
    """
    found = shares(trace)
    both, loads, mmas = (
        sum(getattr(each, name) for each in found) / max(1, len(found))
        for name in ("both", "loads", "mmas")
    )
    return (
        f"Between an SM's first MMA and its last, both loads and MMAs are in flight "
        f"{both:.0%} of the time, loads alone {loads:.0%}, MMAs alone {mmas:.0%}"
    )


def _marks(trace: Trace, row: Row, columns: int) -> str:
    """One mark for each part of the run."""
    bins, scale = [0] * columns, columns / length(trace)
    for event in row.events:
        begin, end = row.extent(trace, event)
        last = min(columns - 1, int((end - 1e-9) * scale))
        for part in range(min(last, int(begin * scale)), last + 1):
            bins[part] += 1
    levels = LINE if row.events[0].operation == COMMIT else LEVELS
    most = max(bins)
    return "".join(levels[-(-n * (len(levels) - 1) // most)] for n in bins)


def draw(svg: str, trace: Trace, width: int) -> str:
    """Return Rich's picture of a report with the bars of its blank timeline.

    Bars of one row are stacked and never meet; commits have a row of their own.
    """
    found = re.findall(r'x="0" y="([\d.]+)"[^>]*>(SM&#160;\d+)[&<]', svg)
    line_at = {html.unescape(text)[3:]: float(y) for y, text in found}
    stack, bars = rows(trace), []
    scale = columns_of(width) * LETTER / length(trace)
    for sm in shown_sms(trace):
        for i, row in enumerate(rows_of(trace, sm), 1):
            top = line_at[str(sm)] + LINE_HEIGHT * i - BAND + 3
            name = f"SM {sm} {row.name}"
            bars.append(_bars(name, trace, row, stack, top, scale))
    start = re.search(r'<g class="terminal-\d+-matrix">', svg)
    assert start is not None
    return svg[: start.end()] + "\n" + "\n".join(bars) + svg[start.end() :]


def _bars(
    name: str, trace: Trace, row: Row, stack: list[int], top: float, scale: float
) -> str:
    """Draw the bars of one row; `scale` is pixels for a step or a clock."""
    if not row.in_flight:
        pitch, height = 0.0, WARP_HEIGHT
    else:
        pitch = min(6.0, BAND / (1 + max(stack[e.step] for e in row.events)))
        commits = row.events[0].operation == COMMIT
        height = COMMIT_HEIGHT if commits else pitch - min(0.5, pitch / 5)
    bars, end = [], 0.0
    for event in row.events:
        begin, finish = row.extent(trace, event)
        x = NAME_COLUMNS * LETTER + begin * scale
        if not row.in_flight and x < end:
            continue  # a warp's events are closer than pixels
        least = 0.0 if row.in_flight else 1.0
        end = x + max(least, (finish - begin) * scale)
        y = top + stack[event.step] * pitch + (BAND - WARP_HEIGHT) / 2 * (not pitch)
        numbers = {"x": x, "y": y, "width": end - x, "height": height}
        sizes = (f'{name}="{round(n, 2):g}"' for name, n in numbers.items())
        bars.append(f"<rect {' '.join(sizes)}/>")
    head = f'<g fill="{row.colour}"><title>{html.escape(name)}: {row.count}</title>'
    return head + "".join(bars) + "</g>"
