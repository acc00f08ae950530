"""smoke: the kernel family, one idea a step, each bit against the oracle."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from fp4ref.commands.options import Json
from fp4ref.commands.printing import print_json
from fp4ref.errors import InputError
from fp4ref.evidence.smoke import Outcome, smoke
from fp4ref.execution.runs import BackendName
from fp4ref.gemm.ladder import ladder, step


def smoke_command(
    name: Annotated[
        str | None,
        typer.Argument(help="One step, for example pair.", show_default=False),
    ] = None,
    backend: Annotated[
        str | None,
        typer.Option(help="emulator or ptx; both by default.", show_default=False),
    ] = None,
    as_json: Json = False,
) -> None:
    """Run the kernel family, one idea a step, and compare each bit with the oracle.

    Exit status 0 if every bit is right, 1 if one is not.
    """
    both: tuple[BackendName, ...] = ("emulator", "ptx")
    chosen = tuple(each for each in both if backend in (None, each))
    if not chosen:
        raise InputError(f"--backend {backend!r:.60}: say emulator or ptx")
    steps = ladder() if name is None else (step(name),)
    console = Console()
    found: list[Outcome] = []
    for each in steps:
        outcomes = list(smoke((each,), chosen))
        found += outcomes
        if not as_json:
            _print(console, outcomes)
    if as_json:
        print_json([each.to_dict() for each in found])
    else:
        _sum_up(console, found)
    raise typer.Exit(0 if all(each.passed for each in found) else 1)


def _print(console: Console, outcomes: list[Outcome]) -> None:
    """Print one step: its idea, its configuration, and what each backend gave."""
    one = outcomes[0].step
    m, n, k = one.shape
    asked = ", ".join(f"{name}={value!r}" for name, value in one.asked.items())
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True, min_width=max(len(each.name) for each in ladder()))
    table.add_column()
    table.add_row(one.name, one.idea)
    sms = f"{one.sms} SM{'s' if one.sms > 1 else ''}"
    table.add_row("", f"{m} x {n} x {k} on {sms}; {asked or 'the default'}")
    for each in outcomes:
        table.add_row("", f"{each.backend:8}  {each}")
    console.print(table, highlight=False, markup=False)


def _sum_up(console: Console, found: list[Outcome]) -> None:
    ran = [each for each in found if not each.why_not]
    wrong = [each for each in ran if each.wrong]
    words = f"{len(ran) - len(wrong)} of {len(ran)} runs right"
    if left := len(found) - len(ran):
        words += f"; {left} not run"
    console.print(f"\n{words}", highlight=False, markup=False)
