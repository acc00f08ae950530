"""cells: the byte ranges of a run that two actors touch, with their names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from fp4ref.trace import Range
from fp4ref.trace.recorded_plan import RecordedPlan

TMEM_ROW = 2048
"""Bytes of one TMEM lane in a `Range`."""
TMEM_CELL = 4
"""Bytes of one TMEM column in one lane."""


@dataclass
class Cells:
    """Distinct ranges, who touches them, and which share bytes."""

    plan: RecordedPlan
    base: Mapping[str, int]
    ranges: list[Range] = field(default_factory=list)
    number: dict[Range, int] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)
    users: list[set[str]] = field(default_factory=list)
    writers: list[set[str]] = field(default_factory=list)

    def add(self, where: Range, actor: str, is_write: bool, name: str = "") -> int:
        """Note an access; return the range's number."""
        if where not in self.number:
            self.number[where] = len(self.ranges)
            self.ranges.append(where)
            self.names.append(name or self._name(where))
            self.users.append(set())
            self.writers.append(set())
        number = self.number[where]
        self.users[number].add(actor)
        if is_write:
            self.writers[number].add(actor)
        return number

    def _name(self, where: Range) -> str:
        """Name bytes by the plan's buffers, and by their address elsewhere."""
        if where.space.startswith("smem"):
            at = where.start - self.base[where.space]
            for part in self.plan.smem:
                if part.offset <= at < part.offset + part.nbytes:
                    return _inside(f"{part.name} {part.stage}", at - part.offset)
        else:
            lane, cell = divmod(where.start, TMEM_ROW)
            column = cell // TMEM_CELL
            for each in self.plan.tmem:
                if each.column <= column < each.column + each.columns:
                    place = f"TMEM {each.name} column {column - each.column}"
                    return place + (f" lane {lane}" if lane else "")
        return f"{where.space} {where.start:#x}, {where.size} bytes"

    def overlaps(self) -> dict[int, tuple[int, ...]]:
        """Return for each range the others that share bytes with it."""
        found: dict[int, list[int]] = {}
        spaces: dict[str, list[int]] = {}
        for number, where in enumerate(self.ranges):
            spaces.setdefault(where.space, []).append(number)
        for numbers in spaces.values():
            numbers.sort(key=lambda n: self.ranges[n].start)
            live: list[int] = []
            for number in numbers:
                where = self.ranges[number]
                live = [n for n in live if self.ranges[n].end > where.start]
                for other in live:
                    if where.overlaps(self.ranges[other]):
                        found.setdefault(number, []).append(other)
                        found.setdefault(other, []).append(number)
                live.append(number)
        return {number: tuple(others) for number, others in found.items()}

    def shared(self, overlaps: Mapping[int, tuple[int, ...]]) -> set[int]:
        """Return the ranges that one actor writes and another one touches."""
        found = set()
        for number in range(len(self.ranges)):
            near = (number, *overlaps.get(number, ()))
            users = set().union(*(self.users[n] for n in near))
            writers = set().union(*(self.writers[n] for n in near))
            if writers and len(users) > 1:
                found.add(number)
        return found


def _inside(name: str, offset: int) -> str:
    return f"{name} + {offset}" if offset else name


def columns_range(space: str, taddr: int, columns: int) -> Range:
    """Bytes of whole TMEM columns, all 128 lanes."""
    start = (taddr >> 16) * TMEM_ROW + (taddr & 0xFFFF) * TMEM_CELL
    return Range(space, start, columns * TMEM_CELL, 128, TMEM_ROW)


def joined(ranges: Iterable[Range]) -> list[Range]:
    """Join neighbouring runs, such as what the lanes of one warp touch."""
    rows = [r for r in ranges if r.rows > 1]
    runs: list[Range] = []
    for each in sorted(r for r in ranges if r.rows == 1):
        if runs and runs[-1].space == each.space and runs[-1].end >= each.start:
            last = runs.pop()
            end = max(last.end, each.end)
            runs.append(Range(last.space, last.start, end - last.start))
        else:
            runs.append(each)
    return rows + runs
