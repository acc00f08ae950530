"""activations: the rows that a weight is multiplied with, from an .npy."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fp4ref.errors import InputError
from fp4ref.files.array_file import read_npy
from fp4ref.numerics.formats import F32

MOST_ELEMENTS: Final = 1 << 28
"""Of one matrix: 1 GB of float32."""


def read_activations(path: str | Path, k: int) -> F32:
    """Read an .npy of floats (..., k) as float32 (M, k).

    Raises
    ------
    InputError
        It is something else.
    """
    array: NDArray[Any] = read_npy(path)
    if array.dtype.name not in ("float32", "float16"):
        raise InputError(
            f"{path}: {array.dtype}; save float32 or float16, such as "
            "x.float().numpy() of a tensor x"
        )
    if array.ndim < 2 or array.shape[-1] != k or 0 in array.shape:
        raise InputError(
            f"{path}: shape {array.shape}; the weight needs (..., {k}), its K"
        )
    rows = array.reshape(-1, k).astype(np.float32)
    if rows.size > MOST_ELEMENTS:
        raise InputError(f"{path}: more than {MOST_ELEMENTS:,} elements; save fewer")
    return rows
