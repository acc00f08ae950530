"""subnormals: the thread must not flush them to zero.

A library built with ``-ffast-math`` can switch the processor to flushing when it is
loaded, and ``torch.set_flush_denormal(True)`` does on purpose. Then NumPy's results
below 2^-126 are 0, and the scale byte 0x00 of UE8M0, 2^-127, erases its block.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from fp4ref.errors import InputError

_SMALLEST: Final = np.array([1], np.uint32).view(np.float32)
_ONE: Final = np.float32(1)


def require_subnormals() -> None:
    """Check that the calling thread computes with subnormal numbers.

    Raises
    ------
    InputError
        It flushes their results to zero, or takes them as zero.
    """
    if not (_SMALLEST * _ONE).view(np.uint32)[0]:
        raise InputError(
            "this thread flushes subnormal numbers to zero, so that results near "
            "2^-127 would be wrong. A library that was loaded has switched the "
            "processor: undo torch.set_flush_denormal(True), or leave out the library "
            "that was built with -ffast-math, or run fp4ref in another process"
        )
