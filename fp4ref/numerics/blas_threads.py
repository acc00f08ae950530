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

_NAMES: Final = (("scipy_", "64_"), ("scipy_", ""), ("", "64_"), ("", ""))
"""What stands before and behind OpenBLAS's functions in NumPy's builds; with 64, their
integers have as many bits."""

_ROW_MAJOR, _AS_IT_IS, _TRANSPOSED = 101, 111, 112
"""CBLAS's words."""

_PIECES: Final = 2
"""For each thread, as another process may hold up one of them."""

Real = TypeVar("Real", np.float32, np.float64)


class _OpenBlas(NamedTuple):
    """How many threads a product takes, and the product of float32.

    Attributes
    ----------
    sgemm
        ``cblas_sgemm``.
    """

    get: Callable[[], int]
    set: Callable[[int], Any]
    sgemm: Callable[..., Any]


@cache
def _open_blas() -> _OpenBlas | None:
    """Return the functions of the OpenBLAS that NumPy multiplies by, if it does."""
    try:
        library = ctypes.CDLL(
            str(import_module("numpy._core._multiarray_umath").__file__)
        )
    except (ImportError, OSError):
        return None
    for before, behind in _NAMES:
        try:
            get, set_ = (
                library[f"{before}openblas_{do}_num_threads{behind}"]
                for do in ("get", "set")
            )
            sgemm = library[f"{before}cblas_sgemm{behind}"]
        except AttributeError:
            continue
        integer = ctypes.c_int64 if behind else ctypes.c_int32
        words, sizes = [ctypes.c_int] * 3, [integer] * 3
        operand, real = [ctypes.c_void_p, integer], ctypes.c_float
        sgemm.argtypes = [*words, *sizes, real, *operand, *operand, real, *operand]
        sgemm.restype = None
        return _OpenBlas(get, set_, sgemm)
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
    a: npt.NDArray[Real],
    b: npt.NDArray[Real],
    out: npt.NDArray[Real] | None = None,
    add: bool = False,
) -> npt.NDArray[Real]:
    """Return ``a @ b.T``, by as many threads as BLAS had before `one_thread`.

    Parameters
    ----------
    add
        To what is in `out`, in pieces of K as BLAS takes them.
    """
    d = np.empty((len(a), len(b)), a.dtype) if out is None else out
    threads = min(_HOLD.threads, compiled.THREADS) if _HOLD.count else 1

    def some_rows(first: int, last: int) -> None:
        rows = slice(first, last)
        if add:
            _accumulate(a[rows], b, d[rows])
        else:
            np.matmul(a[rows], b.T, out=d[rows])

    if threads == 1 or a.size * len(b) < compiled.SERIAL_LIMIT:
        some_rows(0, len(a))
    else:
        compiled.in_pieces(some_rows, len(a), -(-len(a) // (_PIECES * threads)))
    return d


def _accumulate(
    a: npt.NDArray[Real], b: npt.NDArray[Real], d: npt.NDArray[Real]
) -> None:
    """Add ``a @ b.T`` to `d`; OpenBLAS needs no room for the product."""
    blas = _open_blas()
    fit = d.dtype == np.float32 and d.size > 0
    fit = fit and a.strides[1] == b.strides[1] == d.strides[1] == d.itemsize
    if blas is None or not fit:
        d += a @ b.T
        return
    operands = [
        (each.ctypes.data, each.strides[0] // each.itemsize) for each in (a, b, d)
    ]
    sizes = len(a), len(b), a.shape[1]
    of_a, of_b, of_d = operands
    words = _ROW_MAJOR, _AS_IT_IS, _TRANSPOSED
    blas.sgemm(*words, *sizes, 1.0, *of_a, *of_b, 1.0, *of_d)
