"""bench: how long a product takes, beside what you would use instead."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Final, Literal

import typer
from rich.console import Console
from rich.table import Table

from fp4ref.commands.options import Json
from fp4ref.commands.printing import print_json
from fp4ref.errors import InputError
from fp4ref.evidence.speed import SIZES, Timing, measure
from fp4ref.evidence.speed_pairs import SIZE, measure_threads

_HEADINGS: Final = (
    *("program", "n", "seconds", "x NumPy", "growth", "events", "events/s", "bits"),
)
_BITS: Final = {True: "equal", False: "different", None: ""}
_TURN_HEADINGS: Final = (
    *("threads", "work", "n", "s", "x", "x CPU", "tiers, %", "memory"),
)
"""As much as 80 columns hold; JSON has all."""


def bench_command(
    size: Annotated[
        list[int] | None,
        typer.Option(
            help=f"Side of the matrices; may be repeated. Default: "
            f"{', '.join(map(str, SIZES))}.",
            show_default=False,
        ),
    ] = None,
    threads: Annotated[
        list[int] | None,
        typer.Option(
            help="Instead: `matmul` of ordinary and of wide data in turns with NumPy, "
            "and `quantize`, with so many threads; may be repeated. Takes one size, "
            "2048 by default; a matrix of four times that side is quantised.",
            show_default=False,
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Time a product of n x n matrices by several programs in one run."""
    if threads:
        _print_turns(threads, size or [SIZE], as_json)
        return
    found = list(measure(size or SIZES))
    if as_json:
        print_json([asdict(each) for each in found])
        return
    console = Console()
    console.print(_table([each for each in found if not each.why_not]))
    console.print(
        "growth: to half of the size; 8 is that of the operations. events: of a trace, "
        "or the operations that were counted. bits: beside fp4ref.matmul, where the "
        "program means the tensor core's product.",
        highlight=False,
    )
    for each in found:
        if each.why_not:
            console.print(f"{each.program}: {each.why_not}", highlight=False)


def _print_turns(threads: list[int], sizes: list[int], as_json: bool) -> None:
    """Print what `measure_threads` yields."""
    if len(sizes) > 1:
        raise InputError(
            f"--size {sizes}; --threads takes one size. Leave the rest out"
        )
    found = list(measure_threads(threads, sizes[0]))
    if as_json:
        print_json([asdict(each) for each in found])
        return
    table = Table(box=None)
    for heading in _TURN_HEADINGS:
        justify: Literal["left", "right"] = "left" if heading == "work" else "right"
        table.add_column(heading, no_wrap=True, justify=justify)
    for each in found:
        numbers = each.seconds, each.ratio, each.cpu_ratio
        shares = (f"{100 * share:.1f}" for share in each.shares.values())
        table.add_row(
            str(each.threads),
            each.work,
            str(each.size),
            *("" if number is None else f"{number:.3f}" for number in numbers),
            " ".join(shares),
            "" if each.memory is None else f"{each.memory:.2f}",
        )
    console = Console()
    console.print(table)
    console.print(
        "x: NumPy's seconds over ours; x CPU: those of all threads. tiers: % of the "
        "multiply-adds in float32, float64 and integers. memory: held at once, by the "
        "size of the input.",
        highlight=False,
    )


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
            "" if each.events is None else f"{each.events:,}",
            "" if each.events_per_second is None else f"{each.events_per_second:,.0f}",
            _BITS[each.same_bits],
        )
    return table
