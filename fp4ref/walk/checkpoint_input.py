"""checkpoint_input: a weight of a checkpoint and activations, as a walk's problem."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np

from fp4ref.errors import InputError
from fp4ref.tensors.activations import MOST_ELEMENTS, read_activations
from fp4ref.tensors.checkpoint import Checkpoint
from fp4ref.walk.inputs import Problem, check_k

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
