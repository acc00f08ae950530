"""compare: two traces, at every hardware event."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fp4ref.commands.options import Json
from fp4ref.commands.printing import print_json
from fp4ref.evidence.comparison import compare
from fp4ref.trace import Trace
from fp4ref.trace.file import believing


def compare_command(
    a: Annotated[Path, typer.Argument(help="A trace file.")],
    b: Annotated[Path, typer.Argument(help="Another.")],
    as_json: Json = False,
) -> None:
    """Compare two traces at every hardware event; show the first difference."""
    with believing(a, b):
        comparison = compare(Trace.load(a), Trace.load(b))
    if as_json:
        print_json(comparison.to_dict())
    else:
        print(comparison.report())
    raise typer.Exit(0 if comparison.ok else 1)
