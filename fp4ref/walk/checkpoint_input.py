"""checkpoint_input: a weight of a checkpoint and activations, as a walk's problem."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fp4ref.errors import InputError
from fp4ref.files.array_file import read_npy
from fp4ref.tensors.checkpoint import Checkpoint
from fp4ref.walk.inputs import F32, MOST_ELEMENTS, Problem, check_k

RANDOM_ROWS: Final = 128
"""Rows of activations where no file gives them."""


def checkpoint_problem(
    path: str | Path, tensor: str, activations: str | Path | None = None
) -> Problem:
    """Return a layer of a checkpoint with activations.

    Parameters
    ----------
    path
        As for `Checkpoint`.
    tensor
        Name of a weight (N, K). One that is NVFP4 already keeps its codes and scales.
    activations
        An .npy of floats (M, K), or (..., K), whose leading dimensions are joined.
        None makes up 128 normal rows.

    Raises
    ------
    InputError
        The file, the tensor or the activations cannot be used.
    """
    weight = Checkpoint(path).load(tensor)
    n, k = weight.layer.shape
    if n * k > MOST_ELEMENTS:
        raise InputError(
            f"{path}: {tensor} has more than {MOST_ELEMENTS:,} elements; name another"
        )
    check_k(k)
    notes = list(weight.warnings)
    if activations is None:
        x = np.random.default_rng(0).standard_normal((RANDOM_ROWS, k), np.float32)
        notes.append("x is random: name an .npy by --activations for real ones")
    else:
        x = read_activations(activations, k)
    q = weight.quantised
    if q is not None:
        notes.append(
            f"w keeps the codes and scales of the checkpoint ({weight.layer.kind}); "
            "its error is that of x alone"
        )
    values = weight.values.astype(np.float32)
    return Problem(x, values, tensor, str(path), notes=tuple(notes), quantised=q)


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
