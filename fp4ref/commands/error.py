"""error: what each recipe costs a layer, and which channels stand out."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from fp4ref.commands.options import Force, Json
from fp4ref.commands.printing import print_json, progress_bar
from fp4ref.commands.targets import check_outputs
from fp4ref.errors import InputError
from fp4ref.files.whole_file import write_text
from fp4ref.tensors.checkpoint import Checkpoint
from fp4ref.tensors.checkpoint_error import checkpoint_error
from fp4ref.tensors.layer_error import Channel, LayerError, RecipeError, layer_error
from fp4ref.walk import load_problem

_BAR: Final = 16
_COLUMNS: Final = 110
"""Width of the picture, in characters."""

Workers = Annotated[
    int | None,
    typer.Option(help="Processes of this machine, a layer each, through Dask."),
]
Scheduler = Annotated[
    str | None, typer.Option(help="A Dask cluster instead: tcp://host:8786.")
]
Results = Annotated[
    Path | None,
    typer.Option(help="A folder that keeps each layer; a second run goes on."),
]


def error_command(
    checkpoint: Annotated[
        Path | None,
        typer.Argument(
            help="A safetensors file, index of shards, or folder. Default: a layer of "
            "a real transformer.",
            show_default=False,
        ),
    ] = None,
    tensor: Annotated[
        list[str] | None, typer.Option(help="Only this weight. May be repeated.")
    ] = None,
    recipe: Annotated[
        list[str] | None, typer.Option(help="Only this recipe. May be repeated.")
    ] = None,
    activations: Annotated[
        Path | None, typer.Option(help="An .npy with x (M, K), for the error of y.")
    ] = None,
    workers: Workers = None,
    scheduler: Scheduler = None,
    results: Results = None,
    svg: Annotated[
        Path | None, typer.Option(help="Also write the table as a picture.")
    ] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Compare the recipes on each layer, and name outlier channels."""
    check_outputs([svg], checkpoint, force)
    if checkpoint is None:
        options = [*(tensor or []), activations, workers, scheduler, results]
        given = [option for option in options if option is not None]
        if given:
            raise InputError(
                "--tensor, --activations, --workers, --scheduler and --results go with "
                "a checkpoint"
            )
        problem = load_problem()
        found = [layer_error(problem.title, problem.w, recipe, x=problem.x)]
    else:
        with _kept(results), progress_bar("layers", "starting") as report_progress:
            found = checkpoint_error(
                Checkpoint(checkpoint),
                tensor,
                recipe,
                activations=activations,
                results=results,
                workers=workers,
                scheduler=scheduler,
                progress=report_progress,
            )
    if svg:
        write_text(svg, _picture(found))
    if as_json:
        print_json([asdict(each) for each in found])
    else:
        _print(found, Console())


@contextmanager
def _kept(results: Path | None) -> Iterator[None]:
    """Say on Ctrl-C what is done already."""
    try:
        yield
    except KeyboardInterrupt:
        if results is not None:
            count = len(list(results.glob("*.json")))
            said = f"{results} keeps {count} layers; the same command goes on with it"
            Console(stderr=True).print(Text(said), soft_wrap=True)
        raise


def _print(found: list[LayerError], console: Console) -> None:
    for layer in found:
        n, k = layer.shape
        console.print(Text(f"{_plain(layer.name)}   {n} x {k}", "bold"))
        console.print(_table(layer))
        for what, channels in (("w", layer.outliers_w), ("x", layer.outliers_x)):
            if channels:
                console.print(f"  outlier channels of {what}: {_words(channels)}")
        for note in layer.notes:
            console.print(Text(f"  {_plain(note)}"))
        console.print()


def _table(layer: LayerError) -> Table:
    table = Table(box=None)
    for heading in ("recipe", "w", "y", "NaN", "error"):
        table.add_column(heading, no_wrap=True, justify="left")
    most = max((_size(each) for each in layer.errors), default=0.0)
    for each in layer.errors:
        bar = "#" * round(_BAR * _size(each) / most) if most else ""
        mark = "  best" if each is layer.best else ""
        table.add_row(
            each.recipe,
            _percent(each.w),
            _percent(each.y),
            str(each.nan_blocks or ""),
            bar + mark,
        )
    return table


def _size(error: RecipeError) -> float:
    return (error.w if error.y is None else error.y) or 0.0


def _percent(value: float | None) -> str:
    return "" if value is None else f"{value:.4%}"


def _words(channels: tuple[Channel, ...]) -> str:
    return ", ".join(f"k {c.k} ({c.ratio:.1f} times the median)" for c in channels)


def _plain(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text)


def _picture(found: list[LayerError]) -> str:
    """Return what is printed as a picture that loads nothing from outside."""
    console = Console(record=True, width=_COLUMNS, file=io.StringIO())
    _print(found, console)
    drawn = console.export_svg(title="fp4ref error")
    return re.sub(r"@font-face\s*\{.*?\}", "", drawn, flags=re.DOTALL)
