"""small_blocks: one row of values; random codes and scales."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def row(*values: float) -> NDArray[np.float32]:
    """One row, padded with zeros to whole blocks of 16."""
    padded = np.zeros((1, -(-len(values) // 16) * 16), dtype=np.float32)
    padded[0, : len(values)] = values
    return padded


def codes_and_scales(
    rows: int = 3, k: int = 64, vec: int = 16
) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    rng = np.random.default_rng(5)
    return (
        rng.integers(0, 16, (rows, k), dtype=np.uint8),
        rng.integers(1, 0x7F, (rows, k // vec), dtype=np.uint8),
    )
