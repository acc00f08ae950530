"""stage_table: the life of each fill of a mainloop stage, by the steps of a trace.

    load   the first load into the stage is issued
    full   its barrier says that all bytes are there
    copy   the first copy of scales out of it is started
    mma    the first MMA that reads it is started
    done   the last MMA that reads it has landed
    empty  the commit gives the stage back

A row is one fill: a k-tile, or a group of them. What a warp waited for between these is
in the row too. Only our kernel's traces have a plan, which says what lies in a stage.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from fp4ref.trace import Event, Range, RecordedPlan, Trace

COLUMNS = ("load", "full", "copy", "mma", "done", "empty")
MAINLOOP = "mainloop."
OPERANDS = ("A", "B", "SFA", "SFB")


@dataclass
class Fill:
    """One fill of one stage of an SM; steps are -1 where it never came to that.

    Attributes
    ----------
    steps
        Step of each of `COLUMNS`.
    mma_waits, load_waits
        Steps at which the MMA warp began and ended its wait for this fill, and the
        load warp its wait for the stage to be given back before it; empty if none.
    """

    sm: int
    stage: int
    fill: int
    steps: dict[str, int] = field(default_factory=lambda: dict.fromkeys(COLUMNS, -1))
    mma_waits: tuple[int, ...] = ()
    load_waits: tuple[int, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return what the player reads."""
        return {
            "sm": self.sm,
            "stage": self.stage,
            "fill": self.fill,
            **self.steps,
            "mma_waits": list(self.mma_waits),
            "load_waits": list(self.load_waits),
        }


def fills(trace: Trace) -> list[Fill]:
    """Return every fill in the order of its first load; empty without a plan."""
    if RecordedPlan.of(trace.meta) is None:
        return []
    reader = _Reader(trace)
    for event in trace:
        reader.take(event)
    return sorted(reader.fills, key=lambda each: (each.sm, each.steps["load"]))


class _Reader:
    """Goes through a trace once, and knows the fill that is in each stage."""

    def __init__(self, trace: Trace) -> None:
        self.trace, self.plan = trace, RecordedPlan.required(trace.meta)
        self.fills: list[Fill] = []
        self._loading: dict[tuple[int, int], Fill] = {}
        self._waited: dict[tuple[int, int], tuple[int, ...]] = {}
        self._labels = {(b.space, b.address): b.label for e in trace for b in e.barrier}

    def take(self, event: Event) -> None:
        """Take in one event."""
        if event.operation.endswith(".load"):
            self._take_load(event)
        elif event.operation in ("tcgen05.cp", "tcgen05.mma"):
            self._take_read(event)
        elif event.operation.startswith("mbarrier.try_wait") and event.issued >= 0:
            self._take_wait(event)
        for change in event.barrier:
            if change.before[0] != change.after[0] and change.label.startswith(
                MAINLOOP
            ):
                self._flip(event, change.space, change.label)

    def _stage(self, where: Range) -> tuple[int, int] | None:
        """SM and stage of the operands that a range begins in."""
        if not where.space.startswith("smem"):
            return None
        offset = where.start - self.trace.base[where.space]
        for part in self.plan.smem:
            if part.name in OPERANDS and 0 <= offset - part.offset < part.nbytes:
                return int(where.space[4:]), part.stage
        return None

    def _take_load(self, event: Event) -> None:
        if event.kind != "land":
            return
        for where in event.writes:
            if (key := self._stage(where)) is None:
                continue
            current = self._loading.get(key)
            if current is None or current.steps["full"] >= 0:
                before = [each for each in self.fills if (each.sm, each.stage) == key]
                current = Fill(*key, fill=len(before))
                current.load_waits = self._waited.pop(key, ())
                self.fills.append(current)
                self._loading[key] = current
            first = current.steps["load"]
            current.steps["load"] = min(s for s in (first, event.issued) if s >= 0)

    def _take_read(self, event: Event) -> None:
        """Note the copy or MMA in the fill that its operands were read from.

        An issue names no ranges, so all is told at the landing.
        """
        if event.kind != "land":
            return
        name = "copy" if event.operation == "tcgen05.cp" else "mma"
        for key in {k for r in event.reads if (k := self._stage(r)) is not None}:
            if (current := self._loading.get(key)) is None:
                continue
            known = current.steps[name]
            current.steps[name] = (
                event.issued if known < 0 else min(known, event.issued)
            )
            if name == "mma":
                current.steps["done"] = event.step

    def _take_wait(self, event: Event) -> None:
        label = self._label(event)
        if not label.startswith(MAINLOOP):
            return
        side, stage = label.removeprefix(MAINLOOP).rstrip("]").split("[")
        key, span = (event.sm, int(stage)), (event.issued, event.step)
        if side == "empty":
            self._waited[key] = span
        elif key in self._loading:
            self._loading[key].mma_waits = span

    def _label(self, event: Event) -> str:
        memory, address = f"smem{event.sm}", int(event.operands["mbar"]) & 0xFFFFFF
        return self._labels.get((memory, address), "")

    def _flip(self, event: Event, space: str, label: str) -> None:
        side, stage = label.removeprefix(MAINLOOP).rstrip("]").split("[")
        current = self._loading.get((int(space[4:]), int(stage)))
        if current is not None and current.steps[side] < 0:
            current.steps[side] = event.step
