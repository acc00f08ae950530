"""run_scene: a run, step by step."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from fp4ref.arguments import (
    require_choice,
    require_instance,
    require_integer,
    require_list,
)
from fp4ref.errors import InputError
from fp4ref.evidence.comparison import compare
from fp4ref.evidence.hardware_events import HardwareEvent, hardware_events
from fp4ref.evidence.side_by_side import Pair, side_by_side
from fp4ref.execution.runs import Run
from fp4ref.trace import RecordedPlan, Trace
from fp4ref.trace.recorded_plan import NO_PLAN, has_lanes_of_n, is_m_major
from fp4ref.viz.layout_scenes import scale_places
from fp4ref.viz.packet import Header, Payload, trace_packet
from fp4ref.viz.player import Player, Recorded, require_step
from fp4ref.viz.schedules import require_schedules, schedule_of, schedules_header
from fp4ref.viz.stage_table import fills
from fp4ref.viz.text import step_text

VIEWS = (
    "timeline",
    "stages",
    "barriers",
    "smem",
    "tmem",
    "scales",
    "mma",
    "tiles",
    "tensors",
    "cluster",
    "schedules",
    "sides",
)
PACES = ("events", "milestones", "warp", "barrier")
NEED_A_PLAN = ("stages", "smem", "scales", "tiles", "tensors")
PREVIEW = 32
"""Bytes of a hardware event that the side by side view shows."""


def play(
    run: Run | Trace,
    kernel: Run | None = None,
    *,
    schedules: Sequence[Run] = (),
    view: str = "timeline",
    views: Sequence[str] | None = None,
    step: int = 0,
    sms: Iterable[int] = (0,),
    tiles: int = 2,
    title: str = "",
    pace: str = "events",
) -> Player:
    """Return the player of a run.

    Parameters
    ----------
    run
        A run with a trace, or a trace.
    kernel
        The compiled kernel's run of the same problem, for the view ``"sides"``.
    schedules
        Runs of the same problem under other schedules, to switch to.
    view
        The view shown first: ``"timeline"``, ``"stages"``, ``"barriers"``,
        ``"smem"``, ``"tmem"``, ``"scales"``, ``"mma"``, ``"tiles"``,
        ``"tensors"``, ``"cluster"``, ``"schedules"`` or ``"sides"``.
    views
        The views that can be chosen; all that the trace has by default.
    step
        The step shown first.
    sms
        SMs whose memory is kept.
    tiles
        Tiles of each of these SMs whose bytes are kept.
    pace
        What playing visits at first: ``"events"``, ``"milestones"``, ``"warp"`` or
        ``"barrier"``.

    Raises
    ------
    InputError
        The run has no trace, a view is unknown or needs what was not passed, a step
        or SM is not in the trace, or `schedules` are not of this problem.
    """
    trace = _trace(run, "run")
    require_choice(view, "view", VIEWS)
    for name in _names(views):
        require_choice(name, "views", VIEWS)
    require_step(step, len(trace))
    sides = _sides(run, kernel, view)
    traces = [trace, *_others(schedules)]
    payload, kept = Payload(), _numbers("sms", sms)
    header, _ = trace_packet(trace, sms=kept, tiles=tiles, payload=payload)
    if len(traces) > 1:
        require_schedules(traces)
        header["schedules"] = schedules_header(traces, payload, sms=kept, tiles=tiles)
    _add_scales(header, trace)
    header["stages"] = [each.to_dict() for each in fills(trace)]
    if sides:
        header["sides"] = sides
    planned = "plan" in trace.meta
    view, chosen = _choose_views(available(header), view, views, planned)
    header["title"] = str(title)
    header["pace"] = require_choice(pace, "pace", PACES)
    recorded = {schedule_of(each): _recorded(each) for each in traces}
    return Player(
        header,
        bytes(payload.data),
        steps=len(trace),
        step=step,
        view=view,
        views=chosen,
        text=_recorded(trace).text,
        schedules=recorded if len(traces) > 1 else {},
    )


def available(header: Header) -> list[str]:
    """Return the views that a header has something for."""
    tables, maps = header.get("tables", {}), header.get("maps", {})
    operations = tables.get("operation", ())
    spaces = header.get("spaces", {})
    there = {
        "timeline": bool(operations),
        "stages": bool(header.get("stages")),
        "barriers": bool(tables.get("barrier")),
        "smem": bool(maps.get("smem")) and any(s.startswith("smem") for s in spaces),
        "tmem": any(s.startswith("tmem") for s in spaces),
        "scales": "scales" in header,
        "mma": "tcgen05.mma" in operations,
        "tiles": any(o.startswith("tile_scheduler") for o in operations)
        and {"shape", "plan"} <= header.get("meta", {}).keys(),
        "tensors": _moves_boxes(header),
        "cluster": prod(header.get("meta", {}).get("cluster", ())) > 1,
        "schedules": "schedules" in header,
        "sides": "sides" in header,
        "fault": "fault" in header,
    }
    return [name for name, has in there.items() if has]


def _moves_boxes(header: Header) -> bool:
    """Whether TMA moves all of A, B and D, and their rows are the matrices'."""
    meta = header.get("meta", {})
    if not {"shape", "plan"} <= meta.keys() or is_m_major(meta) or has_lanes_of_n(meta):
        return False
    moved = {each.get("tensor") for each in header["tables"]["operands"]}
    return {"A", "B", "D"} <= moved


def _others(schedules: object) -> list[Trace]:
    runs = require_list(schedules, "schedules", "runs")
    return [_trace(run, "schedules") for run in runs]


def _recorded(trace: Trace) -> Recorded:
    return Recorded(len(trace), lambda step, view: step_text(trace, step, view))


def _names(views: object) -> list[Any]:
    return [] if views is None else require_list(views, "views", "names")


def _numbers(name: str, values: object) -> list[int]:
    listed = require_list(values, name, "whole numbers")
    return [require_integer(value, name) for value in listed]


def _trace(run: object, name: str) -> Trace:
    if not isinstance(run, Run):
        return require_instance(run, name, Trace, "Or the Run that fp4ref.run returns")
    if run.trace is None:
        raise InputError(f"{name} has no trace; call run(..., trace=True)")
    return run.trace


def _add_scales(header: Header, trace: Trace) -> None:
    """Say where the scales of a tile lie, if the trace has a plan with scales."""
    p = RecordedPlan.of(trace.meta)
    if p is None or not p.sf_vec_size:
        return
    m, n, k = (int(trace.meta["shape"][name]) for name in "mnk")
    sizes = {"SFA": (p.tile_m, m), "SFB": (p.sf_rows_b, min(n, p.tile_n))}
    header["scales"] = {
        name: scale_places(
            rows, p.tile_k, p.sf_vec_size, rows_in_all=rows_in_all, k_in_all=k
        )
        for name, (rows, rows_in_all) in sizes.items()
    }


def _sides(run: Run | Trace, kernel: object, view: str) -> Header:
    """Pair the hardware events of both runs, with the first bytes of each."""
    if kernel is None:
        if view == "sides":
            raise InputError(
                "kernel: the view 'sides' needs the kernel's run: play(run, "
                "kernel_run, view='sides') with kernel_run = fp4ref.run(..., "
                "backend='ptx')"
            )
        return {}
    if not isinstance(run, Run) or not isinstance(kernel, Run):
        raise InputError(
            "run, kernel: the view 'sides' compares two runs; pass both as Run"
        )
    traces = _trace(run, "run"), _trace(kernel, "kernel")
    mine, theirs = (hardware_events(trace) for trace in traces)
    pairs = [
        _side(pair, mine.get(pair.key), theirs.get(pair.key))
        for pair in side_by_side(run, kernel)
    ]
    found = compare(run, kernel)
    return {
        "pairs": pairs,
        "first": next((i for i, p in enumerate(pairs) if p["different"]), -1),
        "difference": str(found.first_difference or ""),
    }


def _side(pair: Pair, a: HardwareEvent | None, b: HardwareEvent | None) -> Header:
    """Describe one event of both runs, and the bytes around the first difference."""
    x = a.data.ravel() if a else np.empty(0, np.uint8)
    y = b.data.ravel() if b else np.empty(0, np.uint8)
    size = min(x.size, y.size)
    wrong = np.flatnonzero(x[:size] != y[:size])
    first = int(wrong[0]) if wrong.size else 0
    at = max(0, first - PREVIEW // 2) if pair.different else 0
    return {
        "step": a.event.step if a else -1,
        "key": str(pair.key),
        "frame": pair.frames[-1] if pair.frames else "",
        "python": [pair.python.place, pair.python.text] if pair.python else ["", ""],
        "cuda": [pair.cuda.place, pair.cuda.text] if pair.cuda else ["", ""],
        "nbytes": pair.nbytes,
        "different": pair.different,
        "from": at,
        "mine": _preview(x, at),
        "theirs": _preview(y, at),
    }


def _preview(data: npt.NDArray[np.uint8], at: int) -> list[int | None]:
    part: list[int | None] = [int(v) for v in data[at : at + PREVIEW]]
    return part + [None] * (PREVIEW - len(part) if not part else 0)


def _choose_views(
    there: list[str], view: str, views: Sequence[str] | None, planned: bool
) -> tuple[str, list[str]]:
    """Return the view shown first, and those that can be chosen."""
    chosen = there if views is None else [n for n in there if n in _names(views)]
    if not chosen:
        asked = set(_names(views)) & set(NEED_A_PLAN)
        why = f"; {NO_PLAN}" if asked and not planned else ""
        raise InputError(
            f"views={views!r}: none of them is there; this trace has "
            f"{', '.join(there)}{why}"
        )
    if view in chosen:
        return view, chosen
    if view != "timeline":
        why = f"; {NO_PLAN}" if view in NEED_A_PLAN and not planned else ""
        raise InputError(
            f"view: {view!r} is not among the views: {', '.join(chosen)}{why}"
        )
    return chosen[0], chosen
