"""exit_status: what a command says when something is wrong, and its exit status.

0 is right, 1 a difference or a fault, 2 bad input; 130 after Ctrl-C. Every error that
fp4ref raises on purpose and every warning becomes a sentence on standard error.
"""

from __future__ import annotations

import errno
import io
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO

from rich.console import Console
from typer.core import TyperGroup

from fp4ref.errors import Fp4refError, InputError


class Commands(TyperGroup):
    """A group of commands whose errors and warnings are sentences."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run a command line."""
        with _in_words():
            try:
                return super().main(*args, **kwargs)
            finally:
                sys.stdout.flush()

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was named; Ctrl-C ends it."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            _leave("stopped by Ctrl-C; no file is left half written", 130)


@contextmanager
def _in_words() -> Iterator[None]:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a name that is not UTF-8
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", UserWarning)
            warnings.showwarning = _show_warning
            yield
    except Fp4refError as error:
        _leave(str(error), 2 if isinstance(error, InputError) else 1)
    except MemoryError:
        _leave("memory ran out; take smaller sizes or fewer tiles", 2)
    except OSError as error:
        _lose_output()
        if error.errno != errno.EPIPE:  # whoever read it has seen enough
            where = f"{error.filename}: " if error.filename else "cannot print: "
            _leave(f"{where}{error.strerror or type(error).__name__}", 1)
        sys.exit(1)


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Print the sentence; where the code stands helps nobody here."""
    _print_error(f"warning: {message}", "yellow")


def _leave(sentence: str, status: int) -> None:
    with suppress(OSError):
        _print_error(sentence, "red")
    sys.exit(status)


def _print_error(sentence: str, style: str) -> None:
    console = Console(stderr=True, soft_wrap=True)
    console.print(sentence, style=style, highlight=False, markup=False, emoji=False)


def _lose_output() -> None:
    """Send what is still buffered nowhere, or Python complains of it at its end."""
    with suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
