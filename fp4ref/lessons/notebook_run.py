"""notebook_run: a notebook, cell by cell, in a fresh kernel of this Python."""

from __future__ import annotations

import builtins
import os
import re
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from fp4ref.errors import Fp4refError, InputError
from fp4ref.files.array_file import open_regular
from fp4ref.files.free_memory import require_memory
from fp4ref.lessons.verdict import MIME

_NBYTES_A_BYTE = 20
"""Memory for each byte of a notebook's text, once it is read and checked."""

MISSING = "running notebooks needs JupyterLab; run: pip install 'fp4ref[lab]'"

_LAUNCHER = ("-m", "ipykernel_launcher", "-f", "{connection_file}")


class RedCellError(Fp4refError):
    """A cell raised, took too long, or ended the kernel.

    Attributes
    ----------
    cell_id
        The cell.
    index
        Its position in the notebook.
    """

    def __init__(self, cell_id: str, index: int, reason: str) -> None:
        self.cell_id, self.index, self.reason = cell_id, index, reason
        super().__init__(f"cell {cell_id!r}: {reason}")


def read(path: Path) -> Any:
    """Return a notebook.

    Raises
    ------
    InputError
        The file is not a notebook, or nbformat is not installed.
    """
    nbformat = _import("nbformat")
    try:
        with open_regular(path) as opened:
            size = os.fstat(opened.fileno()).st_size
            require_memory(
                size * _NBYTES_A_BYTE, f"reading {path}", "Clear its output."
            )
            text = opened.read().decode("utf-8")
        with warnings.catch_warnings(action="ignore"):  # older formats have no ids
            notebook = nbformat.reads(text, as_version=4)
            nbformat.validate(notebook)
    except InputError:
        raise
    except Exception as error:  # a damaged notebook raises nearly anything
        raise InputError(f"{path} is not a notebook: {_first_line(error)}") from None
    for index, cell in enumerate(notebook.cells):
        cell.setdefault("id", f"cell-{index}")
    return notebook


def execute(
    notebook: Any, folder: Path, timeout: int, *, forgive: bool = False
) -> float:
    """Run a notebook and leave the outputs in it; return the seconds it took.

    Parameters
    ----------
    folder
        Working directory of the kernel.
    timeout
        Seconds for each cell.
    forgive
        Go on after a cell that raises.

    Raises
    ------
    RedCellError
        A cell raised (unless forgiven), took too long, or ended the kernel.
    InputError
        nbclient is not installed.
    """
    nbclient = _import("nbclient")
    client = nbclient.NotebookClient(
        notebook,
        timeout=timeout,
        allow_errors=forgive,
        resources={"metadata": {"path": str(folder)}},
    )
    client.log.setLevel("CRITICAL")
    manager = client.create_kernel_manager()
    manager.kernel_spec.argv = [sys.executable, *_LAUNCHER]
    start = time.monotonic()
    quiet = subprocess.DEVNULL if forgive else None
    with tempfile.TemporaryDirectory() as sockets:
        if os.name == "posix":  # no ports that parallel runs would share
            manager.transport, manager.ip = "ipc", f"{sockets}/kernel"
        with client.setup_kernel(stderr=quiet):
            _run(client, notebook.cells, timeout)
    return time.monotonic() - start


def _run(client: Any, cells: list[Any], timeout: int) -> None:
    exceptions = _import("nbclient.exceptions")
    for index, cell in enumerate(cells):
        try:
            client.execute_cell(cell, index)
        except exceptions.CellExecutionError as error:
            raise RedCellError(cell.id, index, _plain(error.traceback)) from None
        except exceptions.CellTimeoutError:
            reason = f"it took longer than {timeout} s"
            raise RedCellError(cell.id, index, reason) from None
        except exceptions.DeadKernelError:
            raise RedCellError(cell.id, index, "it ended the kernel") from None


def data_of(cell: Any, mime: str) -> Iterator[Any]:
    """Yield the data of one mime type that a cell has shown."""
    for output in cell.get("outputs", []):
        if mime in output.get("data", {}):
            yield output["data"][mime]


def checks_of(cell: Any) -> list[tuple[str, bool]]:
    """Return exercise and verdict of each `lessons.check` that a cell has run."""
    return [
        (datum["exercise"], datum["passed"])
        for datum in data_of(cell, MIME)
        if "exercise" in datum
    ]


def error_of(cell: Any) -> str:
    """Return the exception that a cell ended with in one line; '' if with none."""
    for output in cell.get("outputs", []):
        if output.get("output_type") == "error":
            name = _public_name(output["ename"])
            return f"{name}: {output['evalue']}".splitlines()[0][:200]
    return ""


def _public_name(exception: str) -> str:
    """Return the name of the first public class of a built-in exception.

    Python 3.13 raises a private child of SyntaxError for input that ends too early.
    """
    found = getattr(builtins, exception, None)
    classes = found.__mro__ if isinstance(found, type) else ()
    public = (each.__name__ for each in classes if not each.__name__.startswith("_"))
    return next(public, exception)


def _plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]


def _import(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise InputError(MISSING) from None
