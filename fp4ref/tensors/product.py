"""product: the accumulators of a block-scaled product, bit for bit."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fp4ref.errors import InputError
from fp4ref.numerics import matmul_block_scaled
from fp4ref.tensors.block_scaled import BlockScaled, require_block_scaled


def matmul(a: BlockScaled, b: BlockScaled) -> NDArray[np.float32]:
    """Return A @ B.T as the FP32 accumulators after the last K=64 instruction.

    Global scales are *not* divided out: they belong in the epilogue's alpha, as in the
    kernel.

    Parameters
    ----------
    a, b
        (M, K) and (N, K), or (L, M, K) and (L, N, K).

    Returns
    -------
    (M, N) or (L, M, N) float32

    Raises
    ------
    InputError
        Formats or shapes do not fit.
    """
    a, b = require_block_scaled(a, "a"), require_block_scaled(b, "b")
    if (a.format, a.scale_format) != (b.format, b.scale_format):
        raise InputError(
            f"A is {a.format} with {a.scale_format.name} scales, B is {b.format} with "
            f"{b.scale_format.name}; one instruction has one format"
        )
    if a.codes.shape[:-2] != b.codes.shape[:-2] or a.shape[-1] != b.shape[-1]:
        raise InputError(
            f"A is {a.shape} and B is {b.shape}; K and the batch dimension must agree "
            "(D = A @ B.T)"
        )

    def product(i: tuple[int, ...]) -> NDArray[np.float32]:
        return matmul_block_scaled(
            a.codes[i],
            b.codes[i],
            a.scales[i],
            b.scales[i],
            scale_format=a.scale_format,
            vec_size=a.vec_size,
        )

    lead = a.codes.shape[:-2]
    if not lead:
        return product(())
    d = np.empty((*lead, a.shape[-2], b.shape[-2]), np.float32)
    for i in np.ndindex(*lead):
        d[i] = product(i)
    return d
