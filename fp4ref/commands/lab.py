"""lab: why a kernel has the speed it has, without a B200."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from fp4ref.commands.options import Json
from fp4ref.commands.printing import print_json, print_table
from fp4ref.lab.report import by_bank, tables
from fp4ref.lab.request import Request, read_request


def lab_command(
    file: Annotated[
        Path | None,
        typer.Argument(
            help="A TOML file with figures and patterns of your own.",
            show_default=False,
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Bound times by published figures, and count bank conflicts."""
    request = Request() if file is None else read_request(file)
    found = tables(request)
    if as_json:
        print_json([table.to_dict() for table in found])
        return
    console = Console()
    for table in found:
        console.print(
            f"{table.title} ({table.kind})", style="bold", highlight=False, markup=False
        )
        console.print(table.note, highlight=False, markup=False)
        print_table(console, table.headings, table.cells)
        console.print()
    for name, access in request.patterns:
        console.print(f"{name}\n{by_bank(access)}\n", highlight=False, markup=False)
