"""tie_inputs: every tie of the codes and of the scales, and the numbers beside it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fp4ref.numerics.formats import decode_ue4m3

F32 = NDArray[np.float32]
BOUNDARIES = np.array([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5], np.float32)


def with_neighbours(values: F32) -> F32:
    """Each number, and the float32 before and after it, along a new last axis."""
    near = values.view(np.int32)[..., None] + np.arange(-1, 2, dtype=np.int32)
    return near.view(np.float32)


def all_ties(vec: int, scale: float) -> F32:
    """Every scale times every boundary and its neighbours, of both signs, in blocks."""
    if vec == 16:
        scales = decode_ue4m3(np.arange(1, 0x7F, dtype=np.uint8)) * np.float32(scale)
    else:
        scales = np.float32(2) ** np.arange(-120, 120, dtype=np.float32)
    values = (scales[:, None] * BOUNDARIES).astype(np.float32)
    ties = with_neighbours(values).reshape(len(scales), -1)
    ties = np.concatenate([ties, -ties], axis=1)
    rows = np.zeros((len(scales), 4 * vec), np.float32)
    rows.reshape(len(scales), -1, vec)[:, :, 0] = 6 * scales[:, None]
    room = rows.reshape(len(scales), -1, vec)[:, :, 1:]
    filled = np.tile(ties, (1, -(-room[0].size // ties.shape[1])))
    room[:] = filled[:, : room[0].size].reshape(room.shape)
    return rows


def all_scale_ties(vec: int) -> F32:
    """Blocks whose largest value is where a rule changes to the next scale.

    For E4M3 six times the middle of each two scales. For powers of two 4, 6, 7 and 8
    times each: where the largest is on a grid, where ``amax / 6`` is, and where E2M1's
    one mantissa bit rounds up.
    """
    if vec == 16:
        scales = decode_ue4m3(np.arange(0x7F, dtype=np.uint8)).astype(np.float64)
        largest = 6 * (scales[:-1] + scales[1:]) / 2
    else:
        powers = 2.0 ** np.arange(-118, 118)
        largest = (powers[:, None] * np.array([4, 6, 7, 8])).ravel()
    amax = with_neighbours(largest.astype(np.float32)).reshape(-1, 1)
    fractions = np.linspace(-1, 0.96, vec).astype(np.float32)
    rows: F32 = (amax * fractions).astype(np.float32)
    return rows
