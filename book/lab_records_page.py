"""lab_records_page: document 003's records, drawn and beside three models."""

from __future__ import annotations

from functools import cache

from drawing import WIDTH, figure, svg, text
from lab_page import written
from wording import row

from fp4ref.lab.experiments import experiment_tables
from fp4ref.lab.records import Record, records
from fp4ref.lab.table import Table
from fp4ref.parameters import published

FILE = "lab_records.svg"
_BOX, _HEIGHT, _ROW, _TOP = 132, 58, 112, 20
_FILL = {"done": "#e5f4e3", "open": "#dbeafe"}
_OTHER = "#ffffff"


def levels() -> list[list[str]]:
    """Return ids by the longest way to them, those that are tied to nothing last."""
    found = records()
    ways = {id: before(found[id]) for id in found}
    tied = {id for id in found if ways[id]} | {
        each for w in ways.values() for each in w
    }
    depth: dict[str, int] = {}

    def deep(id: str) -> int:
        if id not in depth:
            depth[id] = 1 + max(map(deep, ways[id]), default=-1)
        return depth[id]

    deepest = max(map(deep, tied))
    rows = [
        [id for id in found if id in tied and deep(id) == d] for d in range(deepest + 1)
    ]
    return [*rows, [id for id in found if id not in tied]]


def before(record: Record) -> tuple[str, ...]:
    """Return what has to be there before a record: each record once."""
    base = [record.base] if record.base else []
    return tuple(dict.fromkeys((*record.depends, *record.rests_on, *base)))


def arrows() -> list[tuple[str, str]]:
    """Return from whom to whom, but for what a longer way says already."""
    found = records()

    def behind(id: str) -> set[str]:
        every = set(before(found[id]))
        return every.union(*map(behind, every)) if every else every

    pairs = []
    for id in found:
        near = before(found[id])
        implied = set().union(*(behind(each) for each in near))
        pairs += [(each, id) for each in near if each not in implied]
    return pairs


def places() -> dict[str, tuple[float, int]]:
    """Return the middle of each box's top."""
    at: dict[str, tuple[float, int]] = {}
    for level, ids in enumerate(levels()):
        parents = {id: [at[p][0] for p in before(records()[id])] for id in ids}
        ordered = sorted(ids, key=lambda id: sum(parents[id]) / (len(parents[id]) or 1))
        if not any(parents.values()):
            ordered = ids
        for i, id in enumerate(ordered):
            at[id] = (WIDTH * (i + 0.5) / len(ids), _TOP + _ROW * level)
    return at


def picture() -> str:
    """Boxes by level; an arrow goes to what came after."""
    at = places()
    width = min(_BOX, WIDTH // max(map(len, levels())) - 8)
    drawn = [_arrow(at[a], at[b]) for a, b in arrows()]
    for id, (x, y) in at.items():
        record = records()[id]
        fill = _FILL.get(record.state, _OTHER)
        drawn.append(
            f'<rect x="{x - width / 2:g}" y="{y}" width="{width}" height="{_HEIGHT}" '
            f'rx="6" fill="{fill}" stroke="#475569"/>'
        )
        number = f"{record.place}. " if record.place else ""
        drawn.append(text(x, y + 24, number + id, bold=True))
        drawn.append(text(x, y + 44, record.state))
    height = _TOP + _ROW * (len(levels()) - 1) + _HEIGHT + _TOP
    return svg(height, alt(), drawn)


def _arrow(start: tuple[float, int], end: tuple[float, int]) -> str:
    x, y = start[0], start[1] + _HEIGHT
    to, bottom = end
    return (
        f'<path d="M{x:g} {y}L{to:g} {bottom - 2}" stroke="#475569" fill="none" '
        f'stroke-width="1.5"/><circle cx="{to:g}" cy="{bottom - 2}" r="4" '
        'fill="#475569"/>'
    )


def alt() -> str:
    """One sentence for readers who do not see the picture."""
    said = [f"{b} after {a}" for a, b in arrows()]
    alone = ", ".join(levels()[-1])
    return (
        f"Which experiment came after which: {', '.join(said)}; {alone} on their own."
    )


def text_twin() -> str:
    """The picture in words: a line a record."""
    lines = []
    for record in records().values():
        after = [f"after {', '.join(record.depends)}"] if record.depends else []
        if record.rests_on:
            after.append(f"with figures of {', '.join(record.rests_on)}")
        if record.base:
            after.append(f"from {record.base}'s kernel")
        ways = "; ".join(after) or "on its own"
        place = f" place {record.place}" if record.place else ""
        lines.append(f"{record.id:6}{record.state + place:19}{ways}")
    return "\n".join(["```text", *lines, "```", ""])


def experiments() -> str:
    """The picture, its twin, the table of records, and each one's template."""
    found = _tables()["records"]
    lines = [figure(FILE, alt()), "", "The same in words:", "", text_twin()]
    lines += written(found)
    lines += [row("record", "success", "fail-fast", "effort", "rollback", "result")]
    lines += [row(*["---"] * 6)]
    names = ("id", "success", "fail_fast", "effort", "rollback", "result")
    lines += [row(*(str(each[name]) for name in names)) for each in found.rows]
    return "\n".join([*lines, ""])


def models() -> str:
    """What the models say, where they fail, and without what."""
    names = (
        "baseline",
        "fitted",
        "comparison",
        "sums",
        "failures",
        "others",
        "left_out",
    )
    return "\n".join(line for name in names for line in written(_tables()[name]))


def predictions() -> str:
    """What nobody has run."""
    return "\n".join(written(_tables()["open"]))


def doubtful() -> str:
    """Figures that are doubtful, each with what stands in."""
    return "\n".join(written(_tables()["doubtful"]))


@cache
def _tables() -> dict[str, Table]:
    return {table.id: table for table in experiment_tables(published())}
