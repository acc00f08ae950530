"""assert_bits: comparison of arrays by bit pattern."""

from __future__ import annotations

import numpy as np

UINT = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def assert_bits_equal(actual: np.ndarray, expected: np.ndarray) -> None:
    """Fail with the first coordinate that differs and both raw values."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.dtype.itemsize == expected.dtype.itemsize
    assert actual.shape == expected.shape
    kind = UINT[actual.dtype.itemsize]
    left, right = actual.view(kind), expected.view(kind)
    wrong = np.argwhere(left != right)
    if len(wrong):
        at = tuple(wrong[0].tolist())
        raise AssertionError(
            f"{len(wrong)} of {left.size} differ, first at {at}: "
            f"{int(left[at]):#x}, expected {int(right[at]):#x}"
        )


def from_bits(*patterns: int) -> np.ndarray:
    """Return a float32 array with these bit patterns."""
    return np.array(patterns, np.uint32).view(np.float32)
