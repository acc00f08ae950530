"""frames: the frames of the kernel, with their values, events and code."""

from __future__ import annotations

import inspect
import textwrap
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from fp4ref.commands.options import Json
from fp4ref.commands.printing import print_json
from fp4ref.cuda_kernel.twins import twin
from fp4ref.errors import InputError
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
from fp4ref.trace import Trace
from fp4ref.trace.file import believing

EVENTS_SHOWN = 12
"""Events of a frame that `fp4ref frames ID --trace FILE` lists."""


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
        print_json([f.to_dict() for f in chosen])
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
    if f.asks:
        asks = ", ".join(f"{name}={value!r}" for name, value in f.asks.items())
        fields["asks"] = f"emitted by runs of GemmConfig.nvfp4({asks})"
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
    for behind in ("fget", "func", "compute"):
        found = getattr(found, behind, None) or found
    return found


def _in_words(value: Any) -> str:
    """Write a JSON value on one line."""
    if isinstance(value, list | tuple):
        return ", ".join(_in_words(v) for v in value)
    if isinstance(value, dict):
        return ", ".join(f"{name} {_in_words(v)}" for name, v in value.items())
    if isinstance(value, int) and not isinstance(value, bool) and value > 9:
        return f"{value} ({value:#x})"
    return str(value)
