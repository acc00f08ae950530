"""cells: the byte ranges of a run that two actors touch, with their names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from fp4ref.evidence.protocol.program import EXIT
from fp4ref.trace import Event, Range
from fp4ref.trace.recorded_plan import RecordedPlan

TMEM_ROW = 2048
"""Bytes of one TMEM lane in a `Range`."""
TMEM_CELL = 4
"""Bytes of one TMEM column in one lane."""
LANES = 128
MBARRIER_NBYTES = 8


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
    shared: set[int] = field(default_factory=set)

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

    def exit(self) -> int:
        """Add the cell that ends with the CTA, and return its number."""
        where = Range("cta", 0, 0)
        return self.add(where, EXIT, True, EXIT)

    def note(self, event: Event) -> None:
        """Note what an event touches."""
        who = event.agent if event.kind != "land" else f"landing {event.issued}"
        for where in _of_sm(event, event.reads):
            self.add(where, who, False)
        for where in _of_sm(event, event.writes):
            self.add(where, who, True)
        for where in allocation(event):
            self.add(where, who, True, "the allocated TMEM")

    def touched(self, event: Event, ranges: Iterable[Range]) -> tuple[int, ...]:
        """Return the cells of some ranges of an event that another actor touches."""
        numbers = (self.number[where] for where in _of_sm(event, ranges))
        return tuple(number for number in numbers if number in self.shared)

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

    def share(self, overlaps: Mapping[int, tuple[int, ...]]) -> None:
        """Find the ranges that one actor writes and another one touches."""
        for number in range(len(self.ranges)):
            near = (number, *overlaps.get(number, ()))
            users = set().union(*(self.users[n] for n in near))
            writers = set().union(*(self.writers[n] for n in near))
            if writers and len(users) > 1:
                self.shared.add(number)


def _inside(name: str, offset: int) -> str:
    return f"{name} + {offset}" if offset else name


def allocation(event: Event) -> list[Range]:
    """Return the TMEM that an allocation takes or gives back: columns of all lanes."""
    if event.operation not in ("tcgen05.alloc", "tcgen05.dealloc"):
        return []
    taddr, columns = event.operands["taddr"], event.operands["columns"]
    start = (taddr >> 16) * TMEM_ROW + (taddr & 0xFFFF) * TMEM_CELL
    return [Range(f"tmem{event.sm}", start, columns * TMEM_CELL, LANES, TMEM_ROW)]


def in_sm(event: Event) -> bool:
    """Whether an event touches the SM, and not global memory only."""
    ranges = (*event.reads, *event.writes)
    return bool(event.barrier) or any(where.space != "gmem" for where in ranges)


def _of_sm(event: Event, ranges: Iterable[Range]) -> list[Range]:
    """Return ranges of the SM, without the words of mbarriers that an event counts on.

    Neighbouring runs, such as what the lanes of one warp touch, are one.
    """
    words = {(each.space, each.address) for each in event.barrier}
    found = [
        r
        for r in ranges
        if r.space != "gmem"
        and not (r.nbytes == MBARRIER_NBYTES and (r.space, r.start) in words)
    ]
    return _joined(found) if len(found) > 1 else found


def _joined(ranges: list[Range]) -> list[Range]:
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
