"""why_this_speed: the laboratory's tables and a picture of its model, for lesson 23."""

from __future__ import annotations

from functools import cache

from fp4ref.errors import InputError
from fp4ref.lab.bounds import bound
from fp4ref.lab.pair_model import spans, traced_kernel
from fp4ref.lab.report import tables
from fp4ref.lab.request import Request
from fp4ref.lab.table import Table
from fp4ref.lab.traced.steady import Span
from fp4ref.lab.variants import kernel
from fp4ref.lab.workload import workloads
from fp4ref.lessons.page import Page
from fp4ref.lessons.page import table as html_table
from fp4ref.lessons.svg import BLUE, GREEN, SAND, WHITE, WIDTH, box, svg, text
from fp4ref.parameters import Corner, published

_FILL = {
    "K-loop": BLUE,
    "phase 1": GREEN,
    "phase 2B": GREEN,
    "TMA0 wait": SAND,
    "epi wait": WHITE,
    "ml wait": WHITE,
}
_LEFT, _ROW = 110, 40


def table(id: str) -> Page:
    """Show a table of `fp4ref lab`.

    Raises
    ------
    InputError
        There is no such table.
    """
    found = _tables()
    if id not in found:
        raise InputError(f"table {id!r}: there are {', '.join(found)}")
    shown = found[id]
    first, *rest = shown.headings
    rows = {}
    for name, *cells in shown.cells:
        told = zip(rest, cells, strict=True)
        key = name if name not in rows else f"{name}, {cells[0]}"
        rows[key] = "; ".join(f"{head}: {cell}" for head, cell in told if cell)
    lines = [f"{shown.title} ({shown.kind})", shown.note]
    lines += [f"  {name}: {said}" for name, said in rows.items()]
    caption = f"{shown.title}, by {first} ({shown.kind}). {shown.note}"
    return Page("\n".join(lines), html_table(caption, rows))


def cycles(*switches: str) -> dict[str, float]:
    """Return the model's mean cycles of a tile of document 003's kernel.

    Parameters
    ----------
    *switches
        What is changed, from the baseline; see `fp4ref.lab.variants`.

    Raises
    ------
    InputError
        There is no such switch, or the model knows nothing of it.
    """
    found = traced_kernel(None)(switches)
    if found is None:
        raise InputError(f"{', '.join(switches)}: the model knows nothing of it")
    return dict(found)


def binding(workload: str) -> str:
    """Return the resource that binds a product at the published values.

    Raises
    ------
    InputError
        There is no such product.
    """
    if workload not in workloads():
        raise InputError(f"product {workload!r}: there are {', '.join(workloads())}")
    machine = published().machine(Corner.PUBLISHED)
    return bound(workloads()[workload], machine).binding


def tiles_picture(*switches: str, first: int = 11, count: int = 3) -> Page:
    """Draw what the MMA warp and one epilogue warp do for a few tiles."""
    parts = kernel(switches)
    if parts is None:
        raise InputError(f"{', '.join(switches)}: the model knows nothing of it")
    every = spans(parts)
    own = [
        span
        for span in every
        if span.who == "MMA warp" and first <= span.tile < first + count
    ]
    start, end = own[0].start, own[-1].end
    shown = [
        span._replace(start=max(span.start, start), end=min(span.end, end))
        for span in every
        if span.start < end and span.end > start
    ]
    scale = (WIDTH - _LEFT - 10) / (end - start)
    rows = {"MMA warp": 40, "epilogue warp": 40 + _ROW + 12}
    drawn = [text(8, y + 25, who, anchor="start") for who, y in rows.items()]
    for span in shown:
        x, width = _LEFT + (span.start - start) * scale, (span.end - span.start) * scale
        drawn.append(box(x, rows[span.who], width, _ROW, _FILL[span.what]))
        if width > 44:
            worked = not span.what.endswith("wait")
            word = f"{span.what}, tile {span.tile}" if worked else "waits"
            drawn.append(text(x + width / 2, rows[span.who] + 25, word, size=11))
    legend = "blue K-loop, green epilogue, sand: waits for a load, white: for the other"
    drawn.append(text(_LEFT, 24, f"{end - start:,.0f} clocks; {legend}", anchor="start",
                      size=12))  # fmt: skip
    lines = [_line(span, start) for span in shown]
    alt = f"Tiles {first} to {first + count - 1}. " + " ".join(lines)
    return Page("\n".join(lines), svg(40 + 2 * _ROW + 30, alt, drawn))


def _line(span: Span, start: float) -> str:
    begin, end = span.start - start, span.end - start
    return f"{span.who}: {span.what}, tile {span.tile}, {begin:,.0f} to {end:,.0f}."


@cache
def _tables() -> dict[str, Table]:
    return {found.id: found for found in tables(Request())}
