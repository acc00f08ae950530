"""cli: the command line.

Exit status 0 is right, 1 a difference or a fault, 2 bad input; see `exit_status`.
"""

from __future__ import annotations

import inspect
import json
import os
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from math import isfinite
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from fp4ref.cuda_kernel.build import packaged
from fp4ref.cuda_kernel.sass import MANDATORY, figures
from fp4ref.cuda_kernel.twins import twin
from fp4ref.cutlass.examples import assemble_example, check_multiples, check_sizes
from fp4ref.cutlass.execute import execute_example
from fp4ref.device.diagnosis import doctor as diagnose
from fp4ref.errors import InputError
from fp4ref.evidence import fidelity as fidelity_table
from fp4ref.evidence.comparison import compare as compare_traces
from fp4ref.exit_status import Commands
from fp4ref.files.whole_file import check_target, write_text
from fp4ref.frames import (
    FRAMES,
    Frame,
    FrameKind,
    Verdict,
    derive,
    frame,
    resolve,
    show,
)
from fp4ref.gaps import GAPS
from fp4ref.trace import FILE_SUFFIX, Trace
from fp4ref.trace.file import believing
from fp4ref.viz import play
from fp4ref.walk import (
    DEFAULT_SCHEDULE,
    load_problem,
    make_config,
    random_problem,
    walk,
)
from fp4ref.walk import report as walk_report

app = typer.Typer(
    cls=Commands,
    help="A readable, bit-exact reference for the Blackwell NVFP4 block-scaled GEMM. "
    "Exit status: 0 right, 1 a difference or a fault, 2 bad input.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

EVENTS_SHOWN = 12
"""Events of a frame that `fp4ref frames ID --trace FILE` lists."""

Json = Annotated[bool, typer.Option("--json", help="Print JSON for a program.")]


def main() -> None:
    """Run the command line."""
    app()


def _print_json(value: Any) -> None:
    print(json.dumps(_finite(value), indent=2, default=str, allow_nan=False))


def _finite(value: Any) -> Any:
    """Put null for NaN and Inf, which JSON lacks."""
    if isinstance(value, dict):
        return {name: _finite(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not isfinite(value) else value


def _integers(
    text: str, separator: str, counts: tuple[int, ...], hint: str
) -> list[int]:
    try:
        numbers = [int(part) for part in text.split(separator)]
    except ValueError:
        numbers = []
    if len(numbers) not in counts:
        raise InputError(f"{text[:80]!r}: {hint}")
    return numbers


@app.command("walk")
def walk_command(
    file: Annotated[
        Path | None,
        typer.Argument(
            help="An .npz with x (M, K) and w (N, K). Default: a layer of a real "
            "transformer.",
            show_default=False,
        ),
    ] = None,
    size: Annotated[
        str | None,
        typer.Option(help="Random matrices instead, for example 512x256x1024."),
    ] = None,
    seed: Annotated[
        int, typer.Option(help="Seed of the random matrices, 0 or more.")
    ] = 0,
    output: Annotated[
        str | None,
        typer.Option(help="f32, bf16, f16 or nvfp4. Default: f32.", show_default=False),
    ] = None,
    example: Annotated[
        str | None, typer.Option(help="Use the configuration of CUTLASS example 72b.")
    ] = None,
    tiles: Annotated[
        list[str] | None,
        typer.Option(
            help="Run only this tile, m,n. May be repeated.", show_default=False
        ),
    ] = None,
    sms: Annotated[int, typer.Option(help="SMs of the emulated GPU, 1 to 160.")] = 2,
    schedule: Annotated[
        str, typer.Option(help="When asynchronous work lands: eager, late or a seed.")
    ] = str(DEFAULT_SCHEDULE),
    kernel: Annotated[
        bool, typer.Option(help="Run the compiled CUDA kernel too, and compare.")
    ] = True,
    trace: Annotated[Path, typer.Option(help="Where to leave the trace.")] = Path(
        "walk"
    ),
    perfetto: Annotated[
        Path | None, typer.Option(help="Also write the trace for ui.perfetto.dev.")
    ] = None,
    svg: Annotated[
        Path | None, typer.Option(help="Also write the report as a picture.")
    ] = None,
    player: Annotated[
        Path | None,
        typer.Option(help="Also write a web page to step through the trace."),
    ] = None,
    force: Annotated[bool, typer.Option(help="Overwrite files.")] = False,
    as_json: Json = False,
) -> None:
    """Run a real matrix product through the kernel and check every bit."""
    if file and size:
        raise InputError("give a file or --size, not both")
    if example and output:
        raise InputError("give --output or --example, whose output is NVFP4, not both")
    path = _trace_path(trace)
    _check_outputs([path, perfetto, svg, player], file, force)
    if size:
        hint = "give MxNxK, for example 512x256x1024"
        m, n, k = _integers(size, "x", (3,), hint)
        problem = random_problem(m, n, k, seed)
    else:
        problem = load_problem(file)
    chosen = None
    if tiles:
        hint = "give a tile as m,n, for example 5,0"
        chosen = [tuple(_integers(t, ",", (2, 3), hint)) for t in tiles]
    with _progress(Console(stderr=True)) as report_progress:
        report, run, beside = walk(
            problem,
            config=make_config(output or "f32", example),
            sms=sms,
            tiles=chosen,
            schedule=schedule,
            kernel=kernel,
            progress=report_progress,
        )
    assert run.trace is not None
    run.trace.meta["made_by"] = "fp4ref walk"
    run.trace.save(path)
    report = replace(report, trace_file=str(path))
    if perfetto:
        write_text(perfetto, json.dumps(run.trace.to_perfetto()))
    if svg:
        write_text(svg, walk_report.to_svg(report, run.trace))
    if player:
        shown = play(run, beside, title=f"fp4ref walk: {problem.title}")
        write_text(player, shown.page())
    if as_json:
        _print_json(report.to_dict())
    else:
        walk_report.render(report, run.trace, Console())
    raise typer.Exit(0 if report.ok else 1)


def _check_outputs(
    outputs: Sequence[Path | None], file: Path | None, force: bool
) -> None:
    """Refuse two outputs in one file, the input as output, and what is not ours."""
    taken = {os.path.realpath(file): "the input"} if file else {}
    for path in outputs:
        if path is None:
            continue
        check_target(path)
        if other := taken.get(os.path.realpath(path)):
            raise InputError(f"{path} is {other} too; name another file")
        taken[os.path.realpath(path)] = "another output"
        _check_ours(path, force)


def _check_ours(path: Path, force: bool) -> None:
    """Refuse to overwrite anything but an earlier walk's trace."""
    if force or not path.exists():
        return
    try:
        if Trace.load(path).meta.get("made_by") == "fp4ref walk":
            return
    except InputError:
        pass
    raise InputError(f"{path} exists, and may be yours; use --force to overwrite it")


@contextmanager
def _progress(console: Console) -> Iterator[Callable[[int, int], None]]:
    """Show finished tiles, where someone is looking."""
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    with bar:
        task = bar.add_task(
            "preparing (the first run compiles the MMA model)", total=None
        )

        def report(done: int, total: int) -> None:
            bar.update(task, description="tiles", completed=done, total=total)

        yield report


@app.command("cutlass")
def cutlass_command(
    name: Annotated[str, typer.Argument(help="72b, 81, tutorial-01 or tutorial-02.")],
    m: Annotated[int, typer.Option(help="Rows of D.")] = 256,
    n: Annotated[int, typer.Option(help="Columns of D.")] = 512,
    k: Annotated[int, typer.Option(help="Depth.")] = 512,
    sms: Annotated[int, typer.Option(help="SMs of the emulated GPU, 1 to 160.")] = 2,
    schedule: Annotated[
        str | None,
        typer.Option(
            help="When asynchronous work lands: eager, late or a seed. Default: eager; "
            "late for tutorial-02, whose warps must keep pace.",
            show_default=False,
        ),
    ] = None,
    ordering: Annotated[
        str, typer.Option(help="shipped, or ptx: only what the PTX text promises.")
    ] = "shipped",
    trace: Annotated[
        Path | None, typer.Option(help="Leave the trace here.", show_default=False)
    ] = None,
    force: Annotated[bool, typer.Option(help="Overwrite files.")] = False,
    as_json: Json = False,
) -> None:
    """Run an unmodified CUTLASS example; its own check decides."""
    console = Console(stderr=True)
    if ordering not in ("ptx", "shipped"):
        raise InputError(f"ordering {ordering!r}: say ptx or shipped")
    check_sizes(m, n, k)
    check_multiples(name, m, n, k)
    if trace:
        trace = _trace_path(trace)
        _check_outputs([trace], None, force)
    with console.status(f"building and running {name}") as status:
        run = execute_example(
            name,
            m,
            n,
            k,
            schedule=schedule,
            ordering="ptx" if ordering == "ptx" else "shipped",
            sms=sms,
            trace=trace is not None,
            progress=status.update,
        )
    if trace and run.trace is not None:
        run.trace.save(trace)
    result = run.result
    if as_json:
        _print_json(
            {
                "name": name,
                "passed": result.passed,
                "problems": result.problems,
                "advisories": run.advisories,
                "output": result.output,
                "seconds": result.seconds,
            }
        )
    else:
        print(result.output)
        for problem in result.problems:
            print(problem)
        for advisory, count in run.advisories.items():
            print(f"relies on what the PTX text does not promise: {advisory} ({count})")
        verdict = "passed" if result.passed else "did not pass"
        print(f"CUTLASS {name}, {m} x {n} x {k}: {verdict} its own check")
    raise typer.Exit(0 if result.passed else 1)


@app.command("sass")
def sass_command(
    cutlass: Annotated[
        bool, typer.Option(help="Also build and assemble CUTLASS 72b.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Show registers, spills and the MMA warp's loop of the compiled kernel."""
    packed = json.loads(packaged("figures.json"))
    rows = {
        f"fp4ref {name}": facts
        for name, facts in packed.items()
        if isinstance(facts, dict)
    }
    if cutlass:
        found = figures(assemble_example("72b"))
        rows["CUTLASS 72b"] = {
            "registers": found.registers,
            "spill_instructions": found.spill_instructions,
            "instructions": found.instructions,
            "per_k_tile": found.per_k_tile,
        }
    if as_json:
        _print_json({"nvrtc": packed["nvrtc"], "kernels": rows})
        return
    table = Table(box=None)
    columns = ("registers", "spill instructions", "instructions", "per k-tile")
    table.add_column("kernel")
    for column in columns:
        table.add_column(column, justify="right")
    for name, facts in rows.items():
        values = (facts[c.replace(" ", "_").replace("-", "_")] for c in columns)
        table.add_row(name, *(f"{v:g}" for v in values))
    Console().print(table)
    names = ", ".join(f"{count} {name}" for name, count in MANDATORY.items())
    print(
        f"Compiled by NVRTC {packed['nvrtc']}. Per k-tile: what the MMA warp executes "
        f"in steady state; {sum(MANDATORY.values())} are mandatory ({names})."
    )


def _trace_path(path: Path) -> Path:
    return path if path.name.endswith(FILE_SUFFIX) else Path(f"{path}{FILE_SUFFIX}")


@app.command("compare")
def compare_command(
    a: Annotated[Path, typer.Argument(help="A trace file.")],
    b: Annotated[Path, typer.Argument(help="Another.")],
    as_json: Json = False,
) -> None:
    """Compare two traces at every hardware event; show the first difference."""
    with believing(a, b):
        comparison = compare_traces(Trace.load(a), Trace.load(b))
    if as_json:
        first = comparison.first_difference
        _print_json(
            {
                "ok": comparison.ok,
                "compared": comparison.compared,
                "counts": comparison.counts,
                "first_difference": str(first) if first else None,
            }
        )
    else:
        print(comparison.report())
    raise typer.Exit(0 if comparison.ok else 1)


@app.command("doctor")
def doctor_command(as_json: Json = False) -> None:
    """Say what this machine can run."""
    diagnosis = diagnose()
    if as_json:
        _print_json(diagnosis.to_dict())
    else:
        print(diagnosis)


@app.command("frames")
def frames_command(
    frame_id: Annotated[
        str | None,
        typer.Argument(help="One frame, for example 6.6.9.", show_default=False),
    ] = None,
    trace: Annotated[
        Path | None,
        typer.Option(help="Show the frame's events in this trace.", show_default=False),
    ] = None,
    code: Annotated[
        bool, typer.Option(help="Show the Python function and its CUDA twin.")
    ] = False,
    as_json: Json = False,
) -> None:
    """List the frames of the kernel, or explain one."""
    if trace and not frame_id:
        raise InputError("--trace: name the frame too, for example 6.6.9")
    if code and not frame_id:
        raise InputError("--code: name the frame too, for example 6.6.9")
    if as_json and (trace or code):
        raise InputError("give --json, or --trace and --code, not both")
    chosen = [frame(frame_id)] if frame_id else list(FRAMES.values())
    if as_json:
        _print_json([f.to_dict() for f in chosen])
    elif frame_id:
        _explain(chosen[0], trace)
        if code:
            _show_code(chosen[0])
    else:
        table = Table(box=None)
        for column in ("frame", "kind", "verdict", "subject", "emulator"):
            table.add_column(column, no_wrap=column in ("frame", "kind", "verdict"))
        for f in chosen:
            table.add_row(f.id, f.kind.value, f.verdict.value, f.title, f.emulator)
        Console().print(table)
        _explain_verdicts()


def _explain_verdicts() -> None:
    """Print when a frame has which verdict."""
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column()
    for verdict in Verdict:
        table.add_row(verdict.value, verdict.meaning)
    Console().print("", table, highlight=False, markup=False)


def _explain(f: Frame, trace: Path | None) -> None:
    """Print the entry, its values, and its events in a trace."""
    fields = {name: value for name, value in f.to_dict().items() if value}
    if f.kind in (FrameKind.CONSTRUCTED, FrameKind.COND):
        fields |= show(f.id)
    if trace is not None:
        loaded = Trace.load(trace)
        if f.kind is FrameKind.DERIVED:
            with believing(trace):
                fields |= derive(f.id, loaded)
        else:
            events = [e for e in loaded if f.id in e.frames]
            fields["events"] = f"{len(events)} in {trace}"
            for e in events[:EVENTS_SHOWN]:
                fields[f"step {e.step}"] = f"{e.agent} {e.operation} {e.kind}"
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column()
    for name, value in fields.items():
        table.add_row(name, Text(_in_words(value)))
    Console().print(table, highlight=False, markup=False)


def _show_code(f: Frame) -> None:
    """Print both sides of a frame, with their line numbers."""
    console = Console()
    source, first = inspect.getsourcelines(inspect.unwrap(_code_of(f)))
    text = textwrap.dedent("".join(source))
    console.print(f"\n[bold]{f.emulator}[/bold]", highlight=False)
    console.print(
        Syntax(text, "python", word_wrap=True, line_numbers=True, start_line=first)
    )
    found = twin(f.emulator)
    if found is None:
        console.print("\nThe host does this; the kernel has no twin of it.")
        return
    console.print(f"\n[bold]{found.file}[/bold]", highlight=False)
    console.print(
        Syntax(
            found.text,
            "cuda",
            word_wrap=True,
            line_numbers=True,
            start_line=found.first,
        )
    )


def _code_of(f: Frame) -> Any:
    """Return the function behind a frame, for a property its getter."""
    found = resolve(f)
    return getattr(found, "fget", None) or getattr(found, "func", found)


def _in_words(value: Any) -> str:
    """Write a JSON value on one line."""
    if isinstance(value, list | tuple):
        return ", ".join(_in_words(v) for v in value)
    if isinstance(value, dict):
        return ", ".join(f"{name} {_in_words(v)}" for name, v in value.items())
    if isinstance(value, int) and not isinstance(value, bool) and value > 9:
        return f"{value} ({value:#x})"
    return str(value)


@app.command("fidelity")
def fidelity_command(
    gaps: Annotated[
        bool, typer.Option("--gaps", help="Only the list of what is not modelled.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Say on what each modelled rule rests, and what is not modelled."""
    rules = fidelity_table.RULES
    if as_json:
        _print_json([r.to_dict() for r in (GAPS if gaps else rules)])
        return
    console = Console()
    if not gaps:
        rows = [(r.operation, r.rule, _why(r), r.source) for r in rules]
        _print_table(console, ("operation", "rule", "evidence", "source"), rows)
        for evidence, share in fidelity_table.shares().items():
            console.print(f"{share:6.1%}  {evidence.value}", highlight=False)
        console.print(
            "--json also gives each row's test, and the change of the code that it sees"
        )
        console.print("\nNot modelled:")
    use = {True: "refused by name", False: "goes unseen"}
    rows = [(g.id, g.operation, g.what, use[g.refused]) for g in GAPS]
    _print_table(console, ("gap", "operation", "what", "its use"), rows)


def _why(rule: fidelity_table.Rule) -> str:
    """Say on what a rule rests."""
    if not rule.killed_by:
        return rule.evidence.value
    return f"{rule.evidence.value}; without it, {rule.killed_by}"


def _print_table(
    console: Console, headings: Sequence[str], rows: Iterable[Sequence[str]]
) -> None:
    """Print a table without lines."""
    table = Table(box=None)
    for heading in headings:
        table.add_column(heading, no_wrap=heading == "gap")
    for cells in rows:
        table.add_row(*cells)
    console.print(table, highlight=False, markup=False)


if __name__ == "__main__":
    sys.exit(app())
