"""ex2: the table of ``ex2.approx.ftz.f32``, as it is recorded."""

from __future__ import annotations

import lzma

import numpy as np
from numpy.typing import NDArray


def pack_table(significands: NDArray[np.uint32]) -> NDArray[np.uint8]:
    """Compress the results for x in [1, 2) by their steps, which are 0 to 3."""
    steps = np.diff(significands.view(np.int32)).astype(np.uint8)
    return np.frombuffer(lzma.compress(steps.tobytes(), preset=9), np.uint8)
