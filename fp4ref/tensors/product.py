"""product: the accumulators of a product of narrow operands, bit for bit."""

from __future__ import annotations

from typing import Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from fp4ref.arguments import require_instance
from fp4ref.errors import InputError
from fp4ref.numerics import ElementFormat
from fp4ref.numerics.elements import element
from fp4ref.numerics.integer_models import BlockScaledModel, IntegerModel, TermsModel
from fp4ref.numerics.kinds import MmaKind, kind_of
from fp4ref.numerics.subnormals import require_subnormals
from fp4ref.numerics.tier_report import TierReport
from fp4ref.numerics.tiers import multiply
from fp4ref.tensors.block_scaled import BlockScaled
from fp4ref.tensors.unscaled import Operand, OperandLike, require_operand


@overload
def matmul(
    a: OperandLike, b: OperandLike, *, report: Literal[False] = False
) -> NDArray[np.float32]: ...
@overload
def matmul(
    a: OperandLike, b: OperandLike, *, report: Literal[True]
) -> tuple[NDArray[np.float32], TierReport]: ...
def matmul(
    a: OperandLike, b: OperandLike, *, report: bool = False
) -> NDArray[np.float32] | tuple[NDArray[np.float32], TierReport]:
    """Return A @ B.T as the FP32 accumulators after the last instruction.

    Global scales are *not* divided out: they belong in the epilogue's alpha, as in the
    kernel. BLAS multiplies where a bound proves that it gives the same bits: see
    `fp4ref.numerics.tiers`.

    Parameters
    ----------
    a, b
        (M, K) and (N, K), or (L, M, K) and (L, N, K). Arrays of an operand format
        without scales, as bfloat16, are taken as they are.
    report
        Also return which tier computed each tile of D, and why; ``print`` it.

    Returns
    -------
    (M, N) or (L, M, N) float32
    TierReport
        With `report`.

    Raises
    ------
    InputError
        Formats or shapes do not fit.
    """
    require_subnormals()
    a, b = require_operand(a, "a"), require_operand(b, "b")
    require_instance(report, "report", bool, "Say True or False")
    kind = require_pair(a, b)
    if a.codes.shape[:-2] != b.codes.shape[:-2] or a.shape[-1] != b.shape[-1]:
        raise InputError(
            f"A is {a.shape} and B is {b.shape}; K and the batch dimension must agree "
            "(D = A @ B.T)"
        )
    lead = a.codes.shape[:-2]
    d = np.empty((*lead, a.shape[-2], b.shape[-2]), np.float32)
    tiers = TierReport()
    for i in np.ndindex(*lead):
        _, found = multiply(_model(kind, a, b, i), d[i])
        tiers.tiles += found.tiles
    return (d, tiers) if report else d


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


def _model(kind: MmaKind, a: Operand, b: Operand, i: tuple[int, ...]) -> IntegerModel:
    """Return the integer model of one pair of matrices."""
    a_format, b_format = (ElementFormat(element(q.format).name) for q in (a, b))
    if not isinstance(a, BlockScaled) or not isinstance(b, BlockScaled):
        of_a, of_b = (_whole_steps(q.codes[i], kind.k) for q in (a, b))
        return TermsModel(of_a, of_b, a_format, b_format)
    of_a, of_b = a.codes[i], b.codes[i]
    sfa, sfb = a.scales[i], b.scales[i]
    if kind.name == "mxf8f6f4":
        return TermsModel(of_a, of_b, a_format, b_format, sfa, sfb)
    return BlockScaledModel(of_a, of_b, sfa, sfb, a.scale_format, a.vec_size)


def _whole_steps(codes: NDArray[Any], k: int) -> NDArray[Any]:
    """Pad K with code 0 to whole instructions."""
    return np.pad(codes, ((0, 0), (0, -codes.shape[1] % k)))
