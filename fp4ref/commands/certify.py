"""certify: a trace's barriers, proven right for every schedule or shown to fail."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fp4ref.commands.options import Json
from fp4ref.commands.printing import print_json
from fp4ref.evidence.protocol import certify, explore
from fp4ref.trace import Trace
from fp4ref.trace.file import believing


def certify_command(
    trace: Annotated[Path, typer.Argument(help="A trace file.")],
    search: Annotated[
        bool, typer.Option("--explore", help="Search every schedule too.")
    ] = False,
    ring: Annotated[
        str | None,
        typer.Option(
            help="Search only this ring, for example mainloop.", show_default=False
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Prove a trace's barriers free of deadlock and overrun, in every schedule."""
    with believing(trace):
        recorded = Trace.load(trace)
        certificate = certify(recorded)
        searched = explore(recorded, ring=ring) if search or ring else []
    if as_json:
        explored = [each.to_dict() for each in searched]
        print_json(certificate.to_dict() | ({"explored": explored} if searched else {}))
    else:
        print(certificate)
        for each in searched:
            print(each)
    ok = certificate.ok and all(each.ok for each in searched)
    raise typer.Exit(0 if ok else 1)
