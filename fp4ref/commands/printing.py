"""printing: JSON and tables on standard output, progress on standard error."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from math import isfinite
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table


def print_json(value: Any) -> None:
    """Print a value as JSON on standard output."""
    print(json.dumps(_finite(value), indent=2, default=str, allow_nan=False))


def _finite(value: Any) -> Any:
    """Put null for NaN and Inf, which JSON lacks."""
    if isinstance(value, dict):
        return {name: _finite(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not isfinite(value) else value


def print_table(
    console: Console, headings: Sequence[str], rows: Iterable[Sequence[str]]
) -> None:
    """Print a table without lines."""
    table = Table(box=None)
    for heading in headings:
        table.add_column(heading, no_wrap=heading in ("gap", "recipe"))
    for cells in rows:
        table.add_row(*cells)
    console.print(table, highlight=False, markup=False)


@contextmanager
def progress_bar(what: str, waiting: str) -> Iterator[Callable[[int, int], None]]:
    """Give a function to tell what is done of how many; a terminal shows it.

    Parameters
    ----------
    what, waiting
        The words beside the bar; `waiting` until something is told.
    """
    console = Console(stderr=True)
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    with bar:
        task = bar.add_task(waiting, total=None)

        def report(done: int, total: int) -> None:
            bar.update(task, description=what, completed=done, total=total)

        yield report
