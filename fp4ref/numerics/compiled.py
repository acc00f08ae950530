"""compiled: Numba's ``njit`` and ``prange``, or what stands in where Numba is absent.

Platforms without Numba, WebAssembly among them, run the same lines in Python. Loops
over whole matrices would be slow there, so each module of such loops has a twin in
NumPy; `AVAILABLE` says which to call. Importing this module imports Numba.
"""

from __future__ import annotations

from typing import Any, Final

SERIAL_LIMIT: Final = 1 << 22
"""Multiplications up to which one thread is faster than waking others."""


def interpreted(function: Any = None, **options: Any) -> Any:
    """Return the function itself, which is also its own ``py_func``."""
    if function is None:
        return lambda wrapped: interpreted(wrapped, **options)
    function.py_func = function
    return function


njit: Any = interpreted
prange: Any = range
try:
    import numba
except ImportError:
    AVAILABLE = False
else:
    AVAILABLE = True
    njit, prange = numba.njit, numba.prange
