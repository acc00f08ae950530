"""bench: how long a product takes, beside what you would use instead."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Final

import typer
from rich.console import Console
from rich.table import Table

from fp4ref.commands.options import Json
from fp4ref.commands.printing import print_json
from fp4ref.evidence.speed import SIZES, Timing, measure

_HEADINGS: Final = ("program", "n", "seconds", "x NumPy", "growth", "events/s")


def bench_command(
    size: Annotated[
        list[int] | None,
        typer.Option(
            help=f"Side of the matrices; may be repeated. Default: "
            f"{', '.join(map(str, SIZES))}.",
            show_default=False,
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Time a product of n x n matrices by several programs in one run."""
    found = list(measure(size or SIZES))
    if as_json:
        print_json([asdict(each) for each in found])
        return
    console = Console()
    console.print(_table([each for each in found if not each.why_not]))
    for each in found:
        if each.why_not:
            console.print(f"{each.program}: {each.why_not}", highlight=False)


def _table(found: list[Timing]) -> Table:
    table = Table(box=None)
    for heading in _HEADINGS:
        table.add_column(
            heading, no_wrap=True, justify="left" if heading == "program" else "right"
        )
    for each in found:
        table.add_row(
            each.program,
            str(each.size),
            f"{each.seconds:.4f}",
            f"{each.ratio:.3g}",
            "" if each.growth is None else f"{each.growth:.1f}",
            "" if each.events_per_second is None else f"{each.events_per_second:,.0f}",
        )
    return table
