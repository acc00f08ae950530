"""milestones: the events of a trace that matter, and what each is.

    full    a load completes its barrier: operands are there
    first   the first MMA of a sum is started
    summed  an accumulator is complete
    wakes   a phase flips, and an agent that waited for it can go on
    stored  the last box of a tile is stored
    answer  launch control has answered

An event has one kind, the first in `KINDS` that fits. Only ``stored`` needs our
kernel's plan, so others' kernels have milestones too.
"""

from __future__ import annotations

from fp4ref.trace import Event, RecordedPlan, Trace
from fp4ref.trace.recorded_plan import is_m_major

KINDS = ("first", "stored", "summed", "full", "answer", "wakes")


def milestones(trace: Trace) -> dict[int, str]:
    """Return the kind of each milestone, by step."""
    awaited, stored = _awaited(trace), _last_stores(trace)
    found: dict[int, str] = {}
    for event in trace:
        kind = _kind(event, awaited, stored)
        if kind:
            found[event.step] = kind
    return found


def _kind(event: Event, awaited: set[int], stored: set[int]) -> str:
    if event.operation == "tcgen05.mma" and event.kind == "issue":
        return "" if event.operands.get("enable_input_d") else "first"
    if event.step in stored:
        return "stored"
    if not _flips(event):
        return ""
    if event.kind == "land":
        if event.operation == "tcgen05.commit" and _is(event, "accumulator"):
            return "summed"
        if event.operation.endswith(".load"):
            return "full"
        if event.operation.startswith("clusterlaunchcontrol"):
            return "answer"
    return "wakes" if event.step in awaited else ""


def _flips(event: Event) -> bool:
    return any(each.before[0] != each.after[0] for each in event.barrier)


def _is(event: Event, ring: str) -> bool:
    return any(each.label.startswith(f"{ring}.full") for each in event.barrier)


def _awaited(trace: Trace) -> set[int]:
    """Steps of the last flip of a barrier before a blocked wait for it ended."""
    flips: dict[tuple[str, int], int] = {}
    found = set()
    for event in trace:
        for each in event.barrier:
            if each.before[0] != each.after[0]:
                flips[each.space, each.address] = event.step
        if event.operation.startswith("mbarrier.") and event.kind == "sync":
            key = f"smem{event.sm}", int(event.operands.get("mbar", -1))
            if 0 <= event.issued < flips.get(key, -1):
                found.add(flips[key])
    return found


def _last_stores(trace: Trace) -> set[int]:
    """Steps at which the last box of a tile of D has come to global memory."""
    plan = RecordedPlan.of(trace.meta)
    if plan is None:
        return set()
    turned = is_m_major(trace.meta)
    last: dict[tuple[int, ...], int] = {}
    for event in trace:
        stores = event.kind == "land" and event.operation.endswith(".store")
        if stores and event.operands.get("tensor") == "D" and event.writes:
            x, y, *batch = map(int, event.operands["coords"])
            m, n = (x, y) if turned else (y, x)
            last[m // plan.tile_m, n // plan.tile_n, *batch] = event.step
    return set(last.values())
