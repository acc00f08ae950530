"""cutlass: an unmodified CUTLASS example on the emulated SM."""

from __future__ import annotations

from math import prod
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from fp4ref.commands.options import Force, Json
from fp4ref.commands.printing import print_json
from fp4ref.commands.targets import check_outputs, trace_path
from fp4ref.cutlass.example_table import EXAMPLES
from fp4ref.cutlass.examples import check_multiples, check_sizes
from fp4ref.cutlass.execute import CutlassRun, execute_example
from fp4ref.errors import InputError
from fp4ref.files.whole_file import write_text
from fp4ref.viz import play

Sms = Annotated[
    int | None,
    typer.Option(
        help="SMs of the emulated GPU, 1 to 160; as many as a cluster has CTAs. "
        "Default: 2, 4 for 70-fp8, 8 for 72a and 72c, 16 for tutorials 03 to 05.",
        show_default=False,
    ),
]
Schedule = Annotated[
    str | None,
    typer.Option(
        help="When work lands: eager, late, timed or a seed. Default: eager; "
        "late for tutorials 02, 03 and 05, whose warps must keep pace.",
        show_default=False,
    ),
]
PlayerPage = Annotated[
    Path | None,
    typer.Option(
        help="Leave a page here that steps through the run, without a server.",
        show_default=False,
    ),
]

NAMES = ", ".join(EXAMPLES) + "."


def cutlass_command(
    name: Annotated[str, typer.Argument(help=NAMES)],
    m: Annotated[int, typer.Option(help="Rows of D.")] = 256,
    n: Annotated[int, typer.Option(help="Columns of D.")] = 512,
    k: Annotated[int, typer.Option(help="Depth.")] = 512,
    sms: Sms = None,
    schedule: Schedule = None,
    ordering: Annotated[
        str, typer.Option(help="shipped, or ptx: only what the PTX text promises.")
    ] = "shipped",
    trace: Annotated[
        Path | None, typer.Option(help="Leave the trace here.", show_default=False)
    ] = None,
    player: PlayerPage = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Run an unmodified CUTLASS example; its own check decides."""
    console = Console(stderr=True)
    if ordering not in ("ptx", "shipped"):
        raise InputError(f"ordering {ordering!r}: say ptx or shipped")
    check_sizes(m, n, k)
    check_multiples(name, m, n, k)
    trace = trace_path(trace) if trace else None
    check_outputs([trace, player], None, force)
    with console.status(f"building and running {name}") as status:
        run = execute_example(
            name,
            m,
            n,
            k,
            schedule=schedule,
            ordering="ptx" if ordering == "ptx" else "shipped",
            sms=sms,
            trace=trace is not None or player is not None,
            progress=status.update,
        )
    title = f"CUTLASS {name}, {m} x {n} x {k}"
    _write_views(run, title, trace, player)
    if as_json:
        print_json({"name": name} | _to_dict(run))
    else:
        _print_run(run, title)
    raise typer.Exit(0 if run.result.passed else 1)


def _write_views(
    run: CutlassRun, title: str, trace: Path | None, player: Path | None
) -> None:
    """Write the trace and what shows it, where a file is named."""
    if run.trace is None:
        return
    if trace:
        run.trace.save(trace)
    if player:
        view = "cluster" if prod(run.trace.meta["cluster"]) > 1 else "timeline"
        write_text(player, play(run.trace, view=view, title=title).page())


def _to_dict(run: CutlassRun) -> dict[str, Any]:
    """Say how a run ended, in JSON values."""
    result = run.result
    return {
        "passed": result.passed,
        "checked": EXAMPLES[result.name].checks,
        "problems": result.problems,
        "advisories": run.advisories,
        "output": result.output,
        "seconds": result.seconds,
    }


def _print_run(run: CutlassRun, what: str) -> None:
    """Print what the example printed, and its verdict."""
    print(run.result.output)
    for problem in run.result.problems:
        print(problem)
    for launch in run.result.launches:
        grid, shape = (" x ".join(map(str, of)) for of in (launch.grid, launch.cluster))
        clusters = f" in clusters of {shape}" if prod(launch.cluster) > 1 else ""
        print(f"launched a grid of {grid} CTAs{clusters}")
    for advisory, count in run.advisories.items():
        print(f"relies on what the PTX text does not promise: {advisory} ({count})")
    passed = run.result.passed
    if EXAMPLES[run.result.name].checks:
        print(f"{what}: {'passed' if passed else 'did not pass'} its own check")
    else:
        ended = "ran to its end" if passed else "did not run to its end"
        print(f"{what}: {ended}; its own check is not asked for")
