"""warp_products: the arithmetic of ``mma.sync`` and ``wmma.mma``.

Into float32 and f16 it is that of ``tcgen05.mma`` without scales: MMA-Sim has one model
for both, and an H200 agrees with it. Float64 is a chain of fused multiply-adds along K.
Integers are exact, and wrap around or saturate at the end.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fp4ref.numerics.decoded_operands import decode_terms
from fp4ref.numerics.dot_unscaled_f16 import rounded_sums
from fp4ref.numerics.elements import ElementFormat
from fp4ref.numerics.instruction import mma_unscaled
from fp4ref.ptx.instructions.doubles import fma, quiet
from fp4ref.ptx.instructions.fragments import STORED
from fp4ref.ptx.instructions.rounding import F64

_FORMATS = {
    "f16": ElementFormat.F16,
    "bf16": ElementFormat.BF16,
    "tf32": ElementFormat.F32,
}


class Types(NamedTuple):
    """Types of D, A, B and C by their PTX names."""

    d: str
    a: str
    b: str
    c: str

    @property
    def is_integer(self) -> bool:
        """Whether D is a sum of integers."""
        return self.d == "s32"


def multiply(
    types: Types,
    a: NDArray[Any],
    b: NDArray[Any],
    c: NDArray[Any],
    saturates: bool = False,
) -> NDArray[Any]:
    """Return ``A B^T + C`` as one instruction computes it.

    Parameters
    ----------
    a : (M, K)
        As in `STORED`.
    b : (N, K)
    c : (M, N)
    saturates
        Whether a sum of integers ends at the last one of 32 bits.

    Returns
    -------
    (M, N)
        As in `STORED`.
    """
    if types.is_integer:
        return _integers(a, b, c, saturates)
    if types.d == "f64":
        return _chain(a, b, c)
    a_format, b_format = _FORMATS[types.a], _FORMATS[types.b]
    if (types.d, types.c) == ("f16", "f16"):
        terms = decode_terms(a, a_format.element), decode_terms(b, b_format.element)
        return rounded_sums(*terms, c.view(np.float16)).view(STORED["f16"])
    start = c.view(np.float16).astype(np.float32) if types.c == "f16" else c
    found = mma_unscaled(a, b, start, a_format=a_format, b_format=b_format)
    if types.d == "f32":
        return found
    with np.errstate(over="ignore", under="ignore"):
        return found.astype(np.float16).view(STORED["f16"])


def _integers(
    a: NDArray[Any], b: NDArray[Any], c: NDArray[Any], saturates: bool
) -> NDArray[np.int32]:
    total: NDArray[np.int64] = a.astype(np.int64) @ b.astype(np.int64).T + c
    if saturates:
        limits = np.iinfo(np.int32)
        total = total.clip(limits.min, limits.max)
    return total.astype(np.int32)


def _chain(a: F64, b: F64, c: F64) -> F64:
    """Return float64 sums, rounded after each product; of NaNs as ``fma`` has them."""
    found = c.ravel()
    for k in range(a.shape[1]):
        x, y = (each.ravel() for each in np.broadcast_arrays(a[:, k, None], b[:, k]))
        found = quiet(fma(x, y, found), (x, found, y))
    return found.reshape(c.shape)
