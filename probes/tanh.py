"""tanh: the table of ``tanh.approx.f32``, as it is recorded."""

from __future__ import annotations

import lzma
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fp4ref.ptx.instructions.approximate import TANH_FIRST, TANH_RUNS

FIRST = tuple(TANH_FIRST + (binade << 23) for binade in range(len(TANH_RUNS)))
"""First pattern of each binade, from 2^-8 to 4."""


def pack_table(binades: Sequence[NDArray[np.uint32]]) -> NDArray[np.uint8]:
    """Keep one result of each run, as steps, and compress them byte plane by plane.

    Raises
    ------
    ValueError
        The results of a run are not equal.
    """
    kept = []
    for results, length in zip(binades, TANH_RUNS, strict=True):
        runs = results.reshape(-1, 1 << length)
        if (runs != runs[:, :1]).any():
            raise ValueError(f"a run of {1 << length} patterns has several results")
        kept.append(runs[:, 0])
    steps = np.diff(np.concatenate(kept).view(np.int32), prepend=np.int32(0))
    planes = np.ascontiguousarray(steps.astype("<i4").view(np.uint8).reshape(-1, 4).T)
    return np.frombuffer(lzma.compress(planes.tobytes(), preset=9), np.uint8)
