"""timeline: the work in flight as bars that hide nothing, and how much of it overlaps.

Asynchronous work is in flight from its issue to its landing, both steps included. In
the lane of its unit each piece has a row to itself; commits have lines of their own,
since a commit in flight only waits for the work that it stands behind. A trace of the
schedule "timed" has the same on a clock: `span` is where a bar lies, and `shares` how
much of the time loads and MMAs are in flight.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass

from fp4ref.errors import InputError
from fp4ref.trace.events import Event
from fp4ref.trace.recorded import Trace

MMA, COMMIT = "tcgen05.mma", "tcgen05.commit"


def is_load(event: Event) -> bool:
    """Whether it is the landing of a TMA load."""
    return event.kind == "land" and event.operation.endswith(".load")


def is_mma(event: Event) -> bool:
    """Whether it is the landing of an MMA."""
    return event.kind == "land" and event.operation == MMA


def span(trace: Trace, event: Event) -> tuple[float, float]:
    """Return when an event begins and ends, in clocks.

    A landing's bar begins at the end of its issue, when the work was in flight; its
    unit started on it at `Event.start`.

    Raises
    ------
    InputError
        The trace has no times.
    """
    start, end = event.start, event.end
    if event.kind == "land" and event.issued >= 0:
        start = trace.events[event.issued].end
    if start is None or end is None:
        raise InputError(
            f"event {event.step} has no time; record the trace with schedule='timed'"
        )
    return start, end


@dataclass(frozen=True, slots=True)
class Shares:
    """Shares of an SM's steady state with work in flight; together they are 1.

    Attributes
    ----------
    start, end
        Clocks: from the first MMA that its tensor core starts to the end of the last.
    both, loads, mmas, neither
        Loads and MMAs, loads alone, MMAs alone.
    """

    sm: int
    start: float
    end: float
    both: float
    loads: float
    mmas: float
    neither: float

    def to_dict(self) -> dict[str, float]:
        """JSON values."""
        return asdict(self)


def shares(trace: Trace) -> list[Shares]:
    """Return the shares of each SM that multiplies; of a pair the one that issues.

    Raises
    ------
    InputError
        The trace has no times.
    """
    found = []
    for sm in sorted({event.sm for event in trace if is_mma(event)}):
        mine = [event for event in trace if event.sm == sm]
        mmas = [event for event in mine if is_mma(event)]
        end = max(span(trace, event)[1] for event in mmas)
        start = min(event.start or 0.0 for event in mmas)
        changes: list[tuple[float, int, int]] = [(start, 0, 0), (end, 0, 0)]
        for which, chosen in enumerate((is_load, is_mma)):
            for event in filter(chosen, mine):
                begin, finish = span(trace, event)
                changes += [(begin, which, 1), (finish, which, -1)]
        found.append(_shares(sm, sorted(changes), start, end))
    return found


def _shares(
    sm: int, changes: list[tuple[float, int, int]], start: float, end: float
) -> Shares:
    clocks = {(loads, mmas): 0.0 for loads in (False, True) for mmas in (False, True)}
    counts, now = [0, 0], start
    for time, which, more in changes:
        upto = min(max(time, start), end)
        clocks[counts[0] > 0, counts[1] > 0] += upto - now
        counts[which] += more
        now = upto
    whole = (end - start) or 1.0
    return Shares(
        sm,
        start,
        end,
        clocks[True, True] / whole,
        clocks[True, False] / whole,
        clocks[False, True] / whole,
        clocks[False, False] / whole,
    )


def length(trace: Trace) -> float:
    """Return where the axis of a trace ends: in clocks, or without times in steps."""
    if all(event.end is not None for event in trace):
        return max((event.end or 0.0 for event in trace), default=0.0)
    return float(len(trace))


def extent(trace: Trace, event: Event) -> tuple[float, float]:
    """Return where an event lies on the axis; what is in flight from its issue on."""
    if event.end is not None:
        return span(trace, event)
    return event.issued if event.issued >= 0 else event.step, event.step + 1


def rows(trace: Trace) -> list[int]:
    """Return the row of each event in its band, by step; 0 for what is at once.

    The lane of a unit has three bands: MMAs, commits, and all else. Bars in one row of
    a band never meet: each lies where `extent` says.
    """
    found = [0] * len(trace)
    bands: dict[tuple[int, str, str], list[Event]] = {}
    for event in trace:
        if event.issued >= 0:
            name = event.operation if event.operation in (MMA, COMMIT) else ""
            bands.setdefault((event.sm, event.agent, name), []).append(event)
    for events in bands.values():
        free: list[float] = []  # for each row from when it is free
        for begin, end, step in sorted((*extent(trace, e), e.step) for e in events):
            rows_free = (i for i, since in enumerate(free) if since <= begin)
            row = next(rows_free, len(free))
            free[row:] = [end, *free[row + 1 :]]
            found[step] = row
    return found


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
