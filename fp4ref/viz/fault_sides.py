"""fault_sides: which bytes a fault is about, and the two accesses that meet there.

For a fault that is no deadlock. A race names both sides itself. Of others, the second
side is what the machine refused; the first is what is still in flight there or, without
that, what wrote the bytes last.
"""

from __future__ import annotations

import re
import traceback
from pathlib import Path
from typing import Any, NamedTuple

import fp4ref
from fp4ref.errors import HardwareFault, LaneQuarterViolation
from fp4ref.hardware.in_flight import AsyncOp
from fp4ref.hardware.machine_state import MachineState
from fp4ref.hardware.order.race import Race, RaceFault, Side
from fp4ref.hardware.source_line import is_caller_meant
from fp4ref.trace import Event, Range, Trace
from fp4ref.trace.recorded_plan import RecordedPlan
from fp4ref.viz.sentences import sentence
from fp4ref.viz.strings import say
from fp4ref.viz.wait_graph import Names, agents_in, start_of

LANE_NBYTES, CELL_NBYTES, LANES, QUARTER = 2048, 4, 128, 32
_SHARED = re.compile(r"(smem\d+) (0x[0-9a-f]+)")
_CELL = re.compile(r"(tmem\d+) lane (\d+) column (0x[0-9a-f]+)")
_GLOBAL = re.compile(r"(gmem) (0x[0-9a-f]+)")
_TADDR = re.compile(r"taddr (0x[0-9a-f]+)")
_COLUMNS = re.compile(r"columns (0x[0-9a-f]+) to (0x[0-9a-f]+)")
_LANES = re.compile(r"lanes (\d+) to (\d+)")
_NBYTES = re.compile(r"(\d+) (?:of \d+ )?bytes")
_FLYING = re.compile(r"touches bytes that (\S+) in flight")
_FLIES_AT = re.compile(r"; in flight from .*? at (\S+)$")
_KERNELS = ("gemm", "evidence/faults/programs")
"""Folders whose statements are a kernel's."""


class Place(NamedTuple):
    """Bytes of one memory; in TMEM also as cells."""

    space: str
    start: int
    nbytes: int
    rows: int = 1
    pitch: int = 0

    def cells(self) -> dict[str, int] | None:
        """Lanes and columns, of TMEM."""
        if not self.space.startswith("tmem"):
            return None
        lane, byte = divmod(self.start, LANE_NBYTES)
        columns = max(1, self.nbytes // CELL_NBYTES)
        column = byte // CELL_NBYTES
        return {"lane": lane, "lanes": self.rows, "column": column, "columns": columns}


def fault_sides(error: HardwareFault, trace: Trace) -> dict[str, Any]:
    """Return the bytes (`place`, `cells`, `own`) and the `sides` that meet there.

    A side has `how`, `who`, `words`, `statement` and `step`, -1 where none is known.
    """
    plan = RecordedPlan.of(trace.meta)
    names = Names(plan, error.who)
    place = place_of(error, trace)
    sides: list[dict[str, Any] | None]
    if isinstance(error, RaceFault):
        race: Race = error.races[0]
        sides = [_of_race(each, names, trace) for each in (race.first, race.second)]
    else:
        sides = [_before(error, trace, place, names), _refused(error, trace, names)]
    return {
        "place": place._asdict() | {"window": _window(trace, place.space)}
        if place
        else None,
        "cells": place.cells() if place else None,
        "own": _own_quarter(error),
        "where": error.where,
        "sides": [each for each in sides if each],
    }


def place_of(error: HardwareFault, trace: Trace) -> Place | None:
    """Read the bytes that a fault names, if it names any."""
    if isinstance(error, RaceFault):
        race: Race = error.races[0]
        (start, count), rows = race.runs[0], len(race.runs)
        pitch = race.runs[1][0] - start if rows > 1 else 0
        return Place(race.space, start, count, rows, pitch)
    said = _NBYTES.search(error.what)
    nbytes = int(said[1]) if said else 1
    if found := _CELL.search(error.where):
        start = int(found[2]) * LANE_NBYTES + int(found[3], 16) * CELL_NBYTES
        return Place(found[1], start, CELL_NBYTES)
    if found := _SHARED.search(error.where) or _GLOBAL.search(error.where):
        return Place(found[1], int(found[2], 16), nbytes)
    return _tensor_memory(error, trace)


def _tensor_memory(error: HardwareFault, trace: Trace) -> Place | None:
    """Lanes of an address, or columns of all lanes."""
    sm = trace.events[-1].sm if trace.events else 0
    if found := _TADDR.search(error.where):
        lane, column = divmod(int(found[1], 16), 1 << 16)
        lanes = _LANES.search(error.what)
        first, last = (int(lanes[1]), int(lanes[2])) if lanes else (lane, lane)
        start = min(first, LANES - 1) * LANE_NBYTES + min(column, 511) * CELL_NBYTES
        return Place(f"tmem{sm}", start, CELL_NBYTES, last - first + 1, LANE_NBYTES)
    columns = _COLUMNS.search(error.what)
    if columns and error.where.startswith("tmem"):
        first, last = (int(each, 16) for each in columns.groups())
        nbytes = (max(first, last) - first + 1) * CELL_NBYTES
        return Place(error.where, first * CELL_NBYTES, nbytes, LANES, LANE_NBYTES)
    return None


def _own_quarter(error: HardwareFault) -> list[int] | None:
    """Lanes that the refused warp may touch."""
    found = re.search(r"warp(\d+)", error.who)
    if not isinstance(error, LaneQuarterViolation) or not found:
        return None
    first = QUARTER * (int(found[1]) % 4)
    return [first, first + QUARTER - 1]


def _window(trace: Trace, space: str) -> list[int]:
    """From the first to the last byte of a memory that any event touches."""
    touched = [
        each for e in trace for each in (*e.reads, *e.writes) if each.space == space
    ]
    if not touched:
        return []
    return [min(each.start for each in touched), max(map(_end, touched))]


def _end(each: Range) -> int:
    return each.start + (each.rows - 1) * each.pitch + each.nbytes


def _covers(each: Range, place: Place) -> bool:
    """Whether a range has the first byte of a place."""
    offset = place.start - each.start
    row = offset // each.pitch if each.pitch else 0
    inside = 0 <= row < each.rows and offset - row * each.pitch < each.nbytes
    return each.space == place.space and offset >= 0 and inside


def _side(how: str, who: str, words: str, statement: str, step: int) -> dict[str, Any]:
    return {
        "how": say(f"side.{how}"),
        "who": start_of(who),
        "words": words,
        "statement": statement,
        "step": step,
    }


def _of_race(side: Side, names: Names, trace: Trace) -> dict[str, Any]:
    words = sentence(trace, side.step) if side.step >= 0 else side.operation
    return _side(side.verb, names.within(side.who), words, side.source, side.step)


def _of_event(how: str, event: Event, names: Names, trace: Trace) -> dict[str, Any]:
    who = names.of([(f"{event.cta}", event.agent)])
    statement = event.kernel_source or event.source
    return _side(how, who, sentence(trace, event.step), statement, event.step)


def _before(
    error: HardwareFault, trace: Trace, place: Place | None, names: Names
) -> dict[str, Any] | None:
    """Return what is in flight there, or wrote there last; nobody may have."""
    flying, at = _FLYING.search(error.what), _FLIES_AT.search(error.who)
    if flying:
        for event in reversed(trace.events):
            here = not at or at[1] in (event.source, event.kernel_source)
            if event.kind == "issue" and event.operation == flying[1] and here:
                return _of_event("flies", event, names, trace)
    if place is None or not trace.events:
        return None
    for event in reversed(trace.events):
        if any(_covers(each, place) for each in event.writes):
            return _of_event("wrote", event, names, trace)
    return _side("wrote", say("nobody"), say("side.never"), "", -1)


def _refused(error: HardwareFault, trace: Trace, names: Names) -> dict[str, Any]:
    """Return what was refused: an operation that lands, or a warp's next step."""
    op, statement = _stack(error)
    agents = agents_in(error.who.partition("; ")[0])
    who = names.of(agents[-1:]) if agents else error.who
    if op is not None:
        place = op.kernel_source or op.source
        return _side("refused", who, error.what, place, op.issued)
    step = -1
    if agents:
        cta, name = agents[-1]
        mine = [e.step for e in trace if e.agent == name and cta in ("", f"{e.cta}")]
        step = mine[-1] if mine else -1
    return _side("next", who, error.what, error.statement or statement, step)


def _stack(error: HardwareFault) -> tuple[AsyncOp | None, str]:
    """Return the operation that was landing, and the kernel's statement."""
    root, statement = Path(fp4ref.__file__).parent, ""
    for frame, number in traceback.walk_tb(error.__traceback__):
        if frame.f_code is MachineState.land.__code__:
            landing: AsyncOp = frame.f_locals["op"]
            return landing, ""
        path = Path(frame.f_code.co_filename)
        if not path.is_relative_to(root) or is_caller_meant(frame.f_globals):
            continue
        inside = path.relative_to(root).as_posix()
        if inside.startswith(_KERNELS) and path.name != "problem.py":
            statement = f"{root.name}/{inside}:{number}"
    return None, statement
