"""timeline: the work in flight as bars that hide nothing, and how much of it overlaps.

Asynchronous work is in flight from its issue to its landing, both steps included. In
the lane of its unit each piece has a row to itself; commits have lines of their own,
since a commit in flight only waits for the work that it stands behind.
"""

from __future__ import annotations

from collections.abc import Callable

from fp4ref.trace.events import Event
from fp4ref.trace.recorded import Trace

MMA, COMMIT = "tcgen05.mma", "tcgen05.commit"


def is_load(event: Event) -> bool:
    """Whether it is the landing of a TMA load."""
    return event.kind == "land" and event.operation.endswith(".load")


def is_mma(event: Event) -> bool:
    """Whether it is the landing of an MMA."""
    return event.kind == "land" and event.operation == MMA


def rows(trace: Trace) -> list[int]:
    """Return the row of each event in its band, by step; 0 for what is at once.

    The lane of a unit has three bands: MMAs, commits, and all else. Bars in one row of
    a band never meet: from `Event.issued` to `Event.step`, or where a trace has times
    from `Event.start` to `Event.end`.
    """
    found = [0] * len(trace)
    bands: dict[tuple[int, str, str], list[Event]] = {}
    for event in trace:
        if event.issued >= 0:
            name = event.operation if event.operation in (MMA, COMMIT) else ""
            bands.setdefault((event.sm, event.agent, name), []).append(event)
    for events in bands.values():
        free: list[float] = []  # for each row from when it is free
        for event in sorted(events, key=_bar):
            begin, end = _bar(event)
            rows_free = (i for i, since in enumerate(free) if since <= begin)
            row = next(rows_free, len(free))
            free[row:] = [end, *free[row + 1 :]]
            found[event.step] = row
    return found


def _bar(event: Event) -> tuple[float, float]:
    """Where the bar of a piece of work begins and ends, in clocks or steps."""
    if event.start is not None and event.end is not None:
        return event.start, event.end
    return event.issued, event.step + 1


def in_flight(trace: Trace, sm: int, chosen: Callable[[Event], bool]) -> dict[int, int]:
    """Count the chosen work of one SM in flight, by step; idle steps are left out.

    Parameters
    ----------
    chosen
        Picks landings, for example `is_mma`.
    """
    counts: dict[int, int] = {}
    for event in trace:
        if event.sm == sm and event.issued >= 0 and chosen(event):
            for step in range(event.issued, event.step + 1):
                counts[step] = counts.get(step, 0) + 1
    return counts


def overlap(trace: Trace) -> int:
    """Count the steps at which some SM has both a load and an MMA in flight."""
    steps: set[int] = set()
    for sm in {event.sm for event in trace}:
        loads, mmas = (in_flight(trace, sm, chosen) for chosen in (is_load, is_mma))
        steps |= loads.keys() & mmas.keys()
    return len(steps)
