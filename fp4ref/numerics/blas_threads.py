"""blas_threads: products by BLAS, shared by the threads of `compiled`.

The threads of OpenBLAS spin for a tenth of a second after each product. Beside passes
over D on other threads they take the processors' time and, where there are no more
processors, keep those threads waiting. So OpenBLAS is held to the calling thread while
a product of slabs is at work, and each thread of ours multiplies some rows. Other
libraries, whose number of threads is not found, share their products themselves.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from threading import Lock
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from fp4ref.numerics import compiled

_NAMES: Final = (
    *("scipy_openblas_{}_num_threads64_", "scipy_openblas_{}_num_threads"),
    *("openblas_{}_num_threads64_", "openblas_{}_num_threads"),
)
"""Of OpenBLAS's functions, as NumPy's builds have them."""

_PIECES: Final = 2
"""For each thread, as another process may hold up one of them."""

Real = TypeVar("Real", np.float32, np.float64)


class _OpenBlas(NamedTuple):
    """How many threads a product takes."""

    get: Callable[[], int]
    set: Callable[[int], Any]


@cache
def _open_blas() -> _OpenBlas | None:
    """Return the functions of the OpenBLAS that NumPy multiplies by, if it does."""
    try:
        library = ctypes.CDLL(
            str(import_module("numpy._core._multiarray_umath").__file__)
        )
    except (ImportError, OSError):
        return None
    for name in _NAMES:
        try:
            return _OpenBlas(*(library[name.format(do)] for do in ("get", "set")))
        except AttributeError:
            continue
    return None


@dataclass
class _Hold:
    """Products at work in all threads of this process."""

    lock: Lock = field(default_factory=Lock)
    count: int = 0
    threads: int = 1

    def take(self, blas: _OpenBlas) -> None:
        with self.lock:
            if self.count == 0:
                self.threads = blas.get()
                blas.set(1)
            self.count += 1

    def leave(self, blas: _OpenBlas) -> None:
        with self.lock:
            self.count -= 1
            if self.count == 0:
                blas.set(self.threads)


_HOLD: Final = _Hold()


@contextmanager
def one_thread() -> Iterator[None]:
    """Hold OpenBLAS to the threads that call it; afterwards it has its number again."""
    blas = _open_blas()
    if blas is None or compiled.THREADS == 1:
        yield
        return
    _HOLD.take(blas)
    try:
        yield
    finally:
        _HOLD.leave(blas)


def multiply(
    a: npt.NDArray[Real], b: npt.NDArray[Real], out: npt.NDArray[Real] | None = None
) -> npt.NDArray[Real]:
    """Return ``a @ b.T``, by as many threads as BLAS had before `one_thread`."""
    d = np.empty((len(a), len(b)), a.dtype) if out is None else out
    threads = min(_HOLD.threads, compiled.THREADS) if _HOLD.count else 1
    if threads == 1 or a.size * len(b) < compiled.SERIAL_LIMIT:
        np.matmul(a, b.T, out=d)
        return d

    def some_rows(first: int, last: int) -> None:
        np.matmul(a[first:last], b.T, out=d[first:last])

    compiled.in_pieces(some_rows, len(a), -(-len(a) // (_PIECES * threads)))
    return d
