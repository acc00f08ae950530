"""so_far: what a trace has done up to an event, for the sentence about that event.

An event names addresses. What lies there, which barrier it is, and how many MMAs of a
sum there were, follows from the events before it. So the sentences are the same for the
emulator, our compiled kernel and anybody's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fp4ref.trace import Event, Range, RecordedPlan, Trace

MMA = "tcgen05.mma"
WINDOW = 0xFFFFFF
"""Bits of a shared address that count in the CTA; above is its rank in the cluster."""


@dataclass
class SoFar:
    """The state that sentences need.

    Attributes
    ----------
    loaded
        By shared memory: what lies there, as the range and the load's operands.
    sums
        By SM and accumulator: how many MMAs of the current sum have landed or, under
        the key's third part, were issued.
    numbers
        By shared memory and address: which initialised barrier it is, for those
        without a name.
    """

    trace: Trace
    plan: RecordedPlan | None = None
    labels: dict[tuple[str, int], str] = field(default_factory=dict)
    numbers: dict[tuple[str, int], int] = field(default_factory=dict)
    loaded: dict[str, list[tuple[Range, Mapping[str, Any]]]] = field(
        default_factory=dict
    )
    sums: dict[tuple[int, int, str], int] = field(default_factory=dict)
    ordinals: dict[int, int] = field(default_factory=dict)
    """Ordinal of an MMA in its sum, by the step of its issue."""

    def __post_init__(self) -> None:
        self.plan = RecordedPlan.of(self.trace.meta)

    def take(self, event: Event) -> None:
        """Take in an event, before it is told."""
        for change in event.barrier:
            key = change.space, change.address
            self.labels[key] = change.label
            if not change.label and key not in self.numbers:
                before = sum(space == change.space for space, _ in self.numbers)
                self.numbers[key] = before
        if event.operation == MMA:
            self._count(event)
        if event.kind == "land" and event.operation.endswith(".load"):
            for where in event.writes:
                if where.space.startswith("smem") and "tensor" in event.operands:
                    self._fill(where, event.operands)

    def _count(self, event: Event) -> None:
        key = event.sm, int(event.operands["d_tmem"]), event.kind
        self.sums[key] = (
            self.sums.get(key, 0) + 1 if event.operands.get("enable_input_d") else 1
        )
        if event.kind == "issue":
            self.ordinals[event.step] = self.sums[key]

    def _fill(self, where: Range, operands: Mapping[str, Any]) -> None:
        there = self.loaded.setdefault(where.space, [])
        there[:] = [each for each in there if not each[0].overlaps(where)]
        there.append((where, operands))

    def ordinal(self, event: Event) -> int:
        """Return which MMA of its sum an issue or landing is, from 1."""
        return self.ordinals.get(event.issued if event.issued >= 0 else event.step, 1)

    def load_at(self, where: Range) -> Mapping[str, Any]:
        """Return the operands of the load whose bytes lie there; empty if unknown."""
        for found, operands in self.loaded.get(where.space, ()):
            if found.start <= where.start < found.end:
                return operands
        return {}

    def stage(self, space: str, address: int) -> tuple[str, int] | None:
        """Return name and stage of the buffer at a shared address, by the plan."""
        if self.plan is None or space not in self.trace.base:
            return None
        offset = (address & WINDOW) - self.trace.base[space]
        for part in self.plan.smem:
            if part.offset <= offset < part.offset + part.nbytes:
                return part.name, part.stage
        return None

    def tile(self, operands: Mapping[str, Any], name: str) -> int | None:
        """Return the tile's coordinate along M (of A) or N (of B) of a load."""
        if self.plan is None or "coords" not in operands:
            return None
        size = self.plan.tile_m if name == "A" else self.plan.tile_n
        return int(operands["coords"][1]) // size
