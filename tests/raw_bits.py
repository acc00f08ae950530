"""raw_bits: arrays compared by their bit patterns, with zero tolerance."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def raw(array: NDArray[Any]) -> NDArray[Any]:
    """Return the bits as unsigned integers of the same size."""
    array = np.ascontiguousarray(array)
    return array.view(UNSIGNED[array.dtype.itemsize])


def assert_bits_equal(actual: NDArray[Any], wanted: NDArray[Any]) -> None:
    """Fail with the first coordinate that differs and both raw values in hex."""
    assert actual.dtype.itemsize == wanted.dtype.itemsize
    assert actual.shape == wanted.shape
    left, right = raw(actual), raw(wanted)
    wrong = np.argwhere(left != right)
    if wrong.size:
        at = tuple(int(i) for i in wrong[0])
        digits = 2 * actual.dtype.itemsize + 2
        raise AssertionError(
            f"{len(wrong)} of {left.size} elements differ, first at {at}: "
            f"{int(left[at]):#0{digits}x}, wanted {int(right[at]):#0{digits}x}"
        )


def float32(*patterns: int) -> NDArray[np.float32]:
    """Return the float32 values with these bit patterns."""
    return np.array(patterns, np.uint32).view(np.float32)
