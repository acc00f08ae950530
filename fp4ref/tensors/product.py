"""product: the accumulators of a product of narrow operands, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fp4ref.errors import InputError
from fp4ref.numerics import (
    ElementFormat,
    matmul_block_scaled,
    matmul_mxf8f6f4,
    matmul_unscaled,
)
from fp4ref.numerics.elements import element
from fp4ref.numerics.kinds import MmaKind, kind_of
from fp4ref.tensors.block_scaled import BlockScaled
from fp4ref.tensors.unscaled import Operand, OperandLike, require_operand


def matmul(a: OperandLike, b: OperandLike) -> NDArray[np.float32]:
    """Return A @ B.T as the FP32 accumulators after the last instruction.

    Global scales are *not* divided out: they belong in the epilogue's alpha, as in the
    kernel.

    Parameters
    ----------
    a, b
        (M, K) and (N, K), or (L, M, K) and (L, N, K). Arrays of an operand format
        without scales, as bfloat16, are taken as they are.

    Returns
    -------
    (M, N) or (L, M, N) float32

    Raises
    ------
    InputError
        Formats or shapes do not fit.
    """
    a, b = require_operand(a, "a"), require_operand(b, "b")
    kind = require_pair(a, b)
    if a.codes.shape[:-2] != b.codes.shape[:-2] or a.shape[-1] != b.shape[-1]:
        raise InputError(
            f"A is {a.shape} and B is {b.shape}; K and the batch dimension must agree "
            "(D = A @ B.T)"
        )
    lead = a.codes.shape[:-2]
    if not lead:
        return _product(kind, a, b, ())
    d = np.empty((*lead, a.shape[-2], b.shape[-2]), np.float32)
    for i in np.ndindex(*lead):
        d[i] = _product(kind, a, b, i)
    return d


def require_pair(a: Operand, b: Operand) -> MmaKind:
    """Return the kind of MMA that multiplies A by B.

    Raises
    ------
    InputError
        None does.
    """
    kind = kind_of(a.format, b.format)
    if kind is None or a.scale_format is not b.scale_format:
        raise InputError(
            f"A is {_in_words(a)}, B is {_in_words(b)}; one instruction has one format"
        )
    return kind


def _in_words(q: Operand) -> str:
    if q.scale_format is None:
        return f"{q.format} without scales"
    return f"{q.format} with {q.scale_format.name} scales"


def _product(
    kind: MmaKind, a: Operand, b: Operand, i: tuple[int, ...]
) -> NDArray[np.float32]:
    """Multiply one pair of matrices."""
    a_format, b_format = (ElementFormat(element(q.format).name) for q in (a, b))
    if not isinstance(a, BlockScaled) or not isinstance(b, BlockScaled):
        of_a, of_b = (_whole_steps(q.codes[i], kind.k) for q in (a, b))
        return matmul_unscaled(of_a, of_b, a_format=a_format, b_format=b_format)
    scales = (a.scales[i], b.scales[i])
    if kind.name == "mxf8f6f4":
        return matmul_mxf8f6f4(
            a.codes[i], b.codes[i], *scales, a_format=a_format, b_format=b_format
        )
    return matmul_block_scaled(
        a.codes[i],
        b.codes[i],
        *scales,
        scale_format=a.scale_format,
        vec_size=a.vec_size,
    )


def _whole_steps(codes: NDArray[Any], k: int) -> NDArray[Any]:
    """Pad K with code 0 to whole instructions."""
    return np.pad(codes, ((0, 0), (0, -codes.shape[1] % k)))
