"""hadamard: a Hadamard transform of runs of elements, which spreads outliers.

``y = (signs * x) @ H / sqrt(n)`` for each run of n elements, H by Sylvester's rule
(TransformerEngine's reference does the same for n = 16 with fixed signs). The sums are
float32 in log2(n) rounds of additions and subtractions, near neighbours first; a
library's matrix product may add in another order. Applying it twice, without signs,
gives x back up to rounding. Signs and transform of A and B cancel in A @ B.T if both
have the same.
"""

from __future__ import annotations

from math import sqrt

import numpy as np
import numpy.typing as npt

from fp4ref.arguments import require_array
from fp4ref.errors import InputError
from fp4ref.numerics.formats import F32, require_float32


def hadamard(x: npt.ArrayLike, n: int, signs: npt.ArrayLike | None = None) -> F32:
    """Transform every run of `n` elements of the last dimension.

    Parameters
    ----------
    x : (..., K), float32
    n
        A power of two that divides K.
    signs : (n,)
        +1 or -1 for each element of a run; None for all +1.

    Raises
    ------
    InputError
        Wrong type, size or signs.
    """
    values = require_float32(x, "hadamard x")
    whole = isinstance(n, int | np.integer) and not isinstance(n, bool)
    if not whole or n < 2 or n & (n - 1) or values.ndim == 0 or values.shape[-1] % n:
        raise InputError(
            f"hadamard_size: {n!r:.40} for x of shape {values.shape}; need a power of "
            "two that divides the last dimension, such as 16"
        )
    y = values.reshape(*values.shape[:-1], values.shape[-1] // n, n)
    if signs is not None:
        sign = require_array(signs, "hadamard signs").astype(np.float32)
        if sign.shape != (n,) or not (np.abs(sign) == 1).all():
            raise InputError(f"hadamard signs: need {n} numbers that are +1 or -1")
        y = y * sign
    with np.errstate(all="ignore"):
        half = 1
        while half < n:
            pairs = y.reshape(*y.shape[:-1], n // (2 * half), 2, half)
            low, high = pairs[..., 0, :], pairs[..., 1, :]
            y = np.stack([low + high, low - high], axis=-2).reshape(y.shape)
            half *= 2
        return (y * np.float32(1 / sqrt(n))).reshape(values.shape)
