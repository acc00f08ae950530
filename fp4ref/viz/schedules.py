"""schedules: one problem under several schedules, for one player.

Work that lands at other times overlaps in other ways, and D has the same bits. Two runs
are laid side by side by their hardware events, as an emulator and a kernel are: each is
named by where it belongs in the matrices.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from fp4ref.errors import InputError
from fp4ref.evidence.hardware_events import HardwareEvent, Key, hardware_events
from fp4ref.trace import Trace
from fp4ref.viz.packet import Header, Payload, trace_packet
from fp4ref.viz.stage_table import fills


def schedule_of(trace: Trace) -> str:
    """Return the name of the schedule that a trace was recorded under."""
    return str(trace.meta.get("schedule", ""))


def require_schedules(traces: Sequence[Trace]) -> None:
    """Refuse traces that one player cannot lay side by side; the first is its own.

    Raises
    ------
    InputError
        Two have one schedule, one has none, or their problems differ.
    """
    names = [schedule_of(trace) for trace in traces]
    for at, (name, trace) in enumerate(zip(names, traces, strict=True)):
        if not name or name in names[:at]:
            raise InputError(
                f"schedules: {'two runs have' if name else 'a run has no'} schedule"
                f"{f' {name}' if name else ''}; each run needs one of its own: "
                "fp4ref.run(..., schedule='late', trace=True)"
            )
        for what in ("shape", "config"):
            if trace.meta.get(what) != traces[0].meta.get(what):
                raise InputError(
                    f"schedules: the run under {name} has another {what} than the run "
                    f"under {names[0]}; pass runs of one problem"
                )


def schedules_header(
    traces: Sequence[Trace], payload: Payload, *, sms: Iterable[int], tiles: int
) -> Header:
    """Return what the player needs to show a run under each schedule.

    Parameters
    ----------
    traces
        The player's own trace, and the others'.
    payload
        Of the player's own; what the others wrote is added, where it is not there yet.
    """
    found = [hardware_events(trace) for trace in traces]
    keys, chosen = list(found[0]), list(sms)
    others = []
    for trace in traces[1:]:
        there = {event.sm for event in trace}
        kept = [sm for sm in chosen if sm in there]
        header, _ = trace_packet(trace, sms=kept, tiles=tiles, payload=payload)
        header["stages"] = [each.to_dict() for each in fills(trace)]
        others.append(header)
    return {
        "names": [schedule_of(trace) for trace in traces],
        "others": others,
        "keys": [str(key) for key in keys],
        "landings": [
            [each[key].event.step if key in each else -1 for key in keys]
            for each in found
        ],
        "same": same_bits(found),
    }


def same_bits(found: Sequence[dict[Key, HardwareEvent]]) -> Header:
    """Count hardware events, their bytes, and those that are not the same in all."""
    keys = dict.fromkeys(key for each in found for key in each)
    different, nbytes = 0, 0
    for key in keys:
        data = [each[key].data if key in each else None for each in found]
        first = next(each for each in data if each is not None)
        nbytes += first.size
        different += any(x is None or not np.array_equal(x, first) for x in data)
    return {"events": len(keys), "nbytes": nbytes, "different": different}
