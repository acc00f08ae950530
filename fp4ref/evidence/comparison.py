"""comparison: align two runs by hardware events and find the first byte that differs.

Runs of different kernels have no frames in common, but they have the same hardware
events: a box of A, B, SFA, SFB or C landed in shared memory; scales were copied to
TMEM; an accumulator changed; a box of D left. Each is named by where it belongs in the
matrices, derived from TMA coordinates and descriptors alone. Steps, agents, stages and
schedules may differ freely.

A name has the corners of two boxes: scales have that of the operand that they scale, an
operand's box that of the other operand beside its own. So one wrong box renames what
came with it. Where the runs differ, boxes that only one of them loaded come first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from fp4ref.arguments import require_instance
from fp4ref.errors import InputError
from fp4ref.evidence.difference import Difference
from fp4ref.evidence.hardware_events import (
    HardwareEvent,
    Key,
    hardware_events,
    operand_boxes,
)
from fp4ref.evidence.matrix_element import element_at
from fp4ref.evidence.written_arrays import compare_arrays
from fp4ref.execution.runs import Run
from fp4ref.trace import RecordedPlan, Trace


@dataclass(frozen=True, slots=True)
class Comparison:
    """Outcome of `compare`.

    Attributes
    ----------
    compared
        Hardware events and result arrays that both runs have.
    first_difference
        None when every byte agrees.
    """

    compared: int
    counts: Mapping[str, int]
    first_difference: Difference | None

    @property
    def ok(self) -> bool:
        """Whether every compared byte is equal and no event is missing."""
        return self.first_difference is None

    def report(self) -> str:
        """Say the outcome in words."""
        by_tensor = ", ".join(f"{n} {t}" for t, n in self.counts.items())
        if self.first_difference is None:
            return f"equal: {self.compared} hardware events, every byte ({by_tensor})"
        return f"different\n{self.first_difference}"

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        first = self.first_difference
        return {
            "ok": self.ok,
            "compared": self.compared,
            "counts": dict(self.counts),
            "first_difference": first.to_dict() if first else None,
        }


def compare(a: Run | Trace, b: Run | Trace) -> Comparison:
    """Compare two runs, or two traces, at every hardware event.

    Raises
    ------
    InputError
        A run without a trace, or two problems of different shape or output.
    """
    traces = [_trace(a, "a"), _trace(b, "b")]
    _require_one_problem(traces)
    counts: dict[str, int] = {}
    difference = _compare_events(traces, counts) or compare_arrays(traces, counts)
    return Comparison(sum(counts.values()), counts, difference)


def _trace(x: object, name: str) -> Trace:
    if isinstance(x, Run):
        if x.trace is None:
            raise InputError(
                f"{name} is a run without a trace; use run(..., trace=True)"
            )
        return x.trace
    return require_instance(x, name, Trace, "Or the Run that fp4ref.run returns")


def _require_one_problem(traces: list[Trace]) -> None:
    """Raise `InputError` for traces of two problems, or of two output formats."""
    for name in ("shape", "scale_format"):
        one, other = (t.meta.get(name) for t in traces)
        if one != other:
            raise InputError(
                f"the runs have different {name}: {one} and {other}; compare runs of "
                "one problem"
            )
    plans = [RecordedPlan.of(t.meta) for t in traces]
    outputs = [p.d_format for p in plans if p]
    if len(set(outputs)) > 1:
        raise InputError(
            f"the runs have different D: {outputs[0]} and {outputs[1]}; compare runs "
            "with one output format"
        )


def _compare_events(traces: list[Trace], counts: dict[str, int]) -> Difference | None:
    """Compare the hardware events; `counts` gets the equal ones, by tensor."""
    mine, theirs = (hardware_events(t) for t in traces)
    for key, event in mine.items():
        other = theirs.get(key)
        if other is None or other.data.shape != event.data.shape:
            boxes = _other_box(*map(operand_boxes, traces))
            return boxes or _unmatched(key, event, other)
        unequal = np.argwhere(event.data != other.data)
        if unequal.size:
            boxes = _other_box(*map(operand_boxes, traces))
            if boxes and boxes.key != key:
                return boxes
            row, column = (int(x) for x in unequal[0])
            return _describe(traces, event, other, row, column)
        counts[key.tensor] = counts.get(key.tensor, 0) + 1
    for key, event in theirs.items():
        if key not in mine:
            return _unmatched(key, None, event)
    return None


def _other_box(
    mine: list[HardwareEvent], theirs: list[HardwareEvent]
) -> Difference | None:
    """Name the first box that only one run loaded, by coordinates of its own."""
    lost, came = _only_in(mine, theirs), _only_in(theirs, mine)
    if not lost:
        return _unmatched(came[0].key, None, came[0]) if came else None
    first = lost[0]
    came = [e for e in came if _own(e).receiver == _own(first).receiver]
    if not came:
        return _unmatched(first.key, first, None)

    def shared(box: HardwareEvent) -> int:
        return sum(map(int.__eq__, _own(box).coords, _own(first).coords))

    other = max(came, key=shared)
    corners = [f"coordinates {_own(e).coords}" for e in (first, other)]
    events = first.event, other.event
    return Difference(first.key, "another box", (corners[0], corners[1]), events)


def _only_in(
    boxes: list[HardwareEvent], others: list[HardwareEvent]
) -> list[HardwareEvent]:
    """Return the boxes that `others` has fewer of, in order of landing.

    Of several that are the same but for their names, those without their equal.
    """
    more = Counter(map(_own, boxes))
    more.subtract(map(_own, others))
    fewer = [e for e in boxes if more[_own(e)] > 0]
    names = {e.key for e in others}
    return [e for e in fewer if e.key not in names] or fewer


class _Own(NamedTuple):
    """What a box is called by, without any other.

    Attributes
    ----------
    receiver
        Tensor, and rank of the CTA.
    """

    receiver: tuple[str, int]
    coords: tuple[int, ...]
    nbytes: int


def _own(box: HardwareEvent) -> _Own:
    coords = tuple(box.event.operands["coords"])
    return _Own((box.key.tensor, box.key.rank), coords, box.data.size)


def _unmatched(
    key: Key, mine: HardwareEvent | None, theirs: HardwareEvent | None
) -> Difference:
    """Name an event that one run lacks, or whose size differs."""
    pair = (mine, theirs)
    sizes = [f"{e.data.size} bytes" if e else "no such event" for e in pair]
    return Difference(
        key,
        "present in one run only" if None in pair else "sizes differ",
        (sizes[0], sizes[1]),
        (mine.event if mine else None, theirs.event if theirs else None),
    )


def _describe(
    traces: list[Trace], a: HardwareEvent, b: HardwareEvent, row: int, column: int
) -> Difference:
    """Name the element that holds the differing byte."""
    place, mine = element_at(traces[0], a, row, column)
    _, theirs = element_at(traces[1], b, row, column)
    return Difference(a.key, place, (mine, theirs), (a.event, b.event))
