"""compiled: Numba's ``njit``, or what stands in where Numba is absent, and its threads.

Platforms without Numba, WebAssembly among them, run the same lines in Python. Loops
over whole matrices would be slow there, so each module of such loops has a twin in
NumPy; `AVAILABLE` says which to call. Importing this module imports Numba.

Loops take a range of rows and release the lock of Python, and `in_pieces` runs them on
threads that sleep when they have nothing to do. Numba's own ``parallel=True`` is not
used: the idle threads of OpenMP spin, and those of BLAS then wait for a processor, so
that two threads take three times as long as one. A process that has used them cannot
fork either, and every loop would be compiled twice.

Numba keeps compiled loops on the disk until the file of the loop changes, and does not
look at the files of what it calls. So `njit` asks that no module of this folder has
changed: an update of one compiles all its loops again.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

SERIAL_LIMIT: Final = 1 << 22
"""Multiplications up to which one thread is faster than waking others."""

PASS: Final = 1 << 18
"""Elements of a pass over a matrix for which a thread is woken."""


def interpreted(function: Any = None, **options: Any) -> Any:
    """Return the function itself, which is also its own ``py_func``."""
    if function is None:
        return lambda wrapped: interpreted(wrapped, **options)
    function.py_func = function
    return function


def sources_digest(folder: Path) -> str:
    """Return a digest of the names and texts of a folder's modules."""
    digest = hashlib.sha256()
    for path in sorted(folder.glob("*.py")):
        text = path.read_bytes()
        digest.update(f"{path.name} {len(text)} ".encode() + text)
    return digest.hexdigest()


@cache
def _stamp() -> str:
    return sources_digest(Path(__file__).parent)


def _kept(**options: Any) -> Any:
    """Do as ``numba.njit``, and have what it keeps depend on all modules of here."""

    def decorate(function: Callable[..., Any]) -> Any:
        dispatcher = numba.njit(**options)(function)
        if options.get("cache"):
            kept = dispatcher._cache._cache_file
            kept._source_stamp = (kept._source_stamp, _stamp())
        return dispatcher

    return decorate


njit: Any = interpreted
THREADS = 1
"""What ``NUMBA_NUM_THREADS`` says; without it, the processors of this process."""

try:
    import numba
except ImportError:
    AVAILABLE = False
else:
    AVAILABLE = True
    njit = _kept
    THREADS = numba.config.NUMBA_NUM_THREADS  # type: ignore[attr-defined]


def read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a C-contiguous view that may not be written.

    A loop is compiled for each set of types, and this is one for all who call it.
    """
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view


def in_pieces(
    loop: Callable[..., Any], count: int, least: int, *arguments: Any
) -> list[Any]:
    """Call ``loop(first, last, *arguments)`` for ranges that make up ``range(count)``.

    Parameters
    ----------
    loop
        Compiled with ``nogil``; its calls may run at once.
    least
        Rows for which another thread is worth waking.

    Returns
    -------
    list
        What the calls returned, in order.
    """
    # More pieces than threads, as another process may hold up one of these.
    pieces = min(count // max(least, 1), 4 * THREADS) if THREADS > 1 else 1
    if pieces < 2:
        return [loop(0, count, *arguments)]
    ends = [count * piece // pieces for piece in range(pieces + 1)]
    some = [
        _threads(THREADS).submit(loop, first, last, *arguments)
        for first, last in pairwise(ends)
    ]
    return [each.result() for each in some]


@cache
def _threads(count: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(count, "fp4ref")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_threads.cache_clear)  # the child has none
