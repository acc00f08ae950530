"""fused_dot_add: the sums of the MMAs of 32 bytes along K, from the model's text.

One instruction adds its products and C in one sum. A product has the exponent that its
two elements and their scales have together, whatever its significand; a zero, and C of
zero, has 2^-133. Every term is cut 25 bits below the largest exponent, toward zero, and
the sum once more to float32. Source: MMA-Sim (arXiv 2511.10909), T-FDPA and ST-FDPA.

Nothing of the machine's arithmetic is used: elements are decoded by ml_dtypes, and
float64 holds every number here without rounding.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from fp4ref.numerics.elements import ELEMENTS, element
from fp4ref.numerics.kinds import MmaKind
from fp4ref.tensors.block_scaled import BlockScaled
from fp4ref.tensors.unscaled import Operand

FRACTION_BITS: Final = 25
"""Bits that the MMA keeps below the largest exponent."""
ZERO_EXPONENT: Final = -133
NAN: Final = np.array(0x7FFFFFFF, np.uint32).view(np.float32)

F64 = NDArray[np.float64]


class Values(NamedTuple):
    """An operand in numbers, scales included, with the exponents that are aligned."""

    value: F64
    exponent: NDArray[np.int64]


def values(q: Operand) -> Values:
    """Decode codes and scales; NaN where either is."""
    of = element(q.format)
    name = of.dtype or ""
    number = np.dtype(getattr(ml_dtypes, name, name))
    with np.errstate(invalid="ignore"):  # a signalling NaN
        value = q.codes.view(number).astype(np.float64)
    # A subnormal has the exponent of the smallest normal number.
    lowest = 1 - of.bias
    exponent = np.maximum(_exponent(value), lowest)
    if not isinstance(q, BlockScaled):
        return Values(value, exponent)
    name = ELEMENTS[q.scale_format.value].dtype or ""
    scales = q.scales.view(getattr(ml_dtypes, name)).astype(np.float64)
    scales = np.repeat(scales, q.vec_size, axis=-1)
    return Values(value * scales, exponent + _exponent(scales))


def fused_product(
    a: Operand, b: Operand, kind: MmaKind, c: NDArray[np.float32] | None = None
) -> NDArray[np.float32]:
    """Return A @ B.T + C as the accumulators after the last instruction.

    Parameters
    ----------
    a, b
        (M, K) and (N, K), or (L, M, K) and (L, N, K), with their formats' kind.
    c
        Enters the first instruction; None is +0.

    Returns
    -------
    (M, N) or (L, M, N)
    """
    x, y = values(a), values(b)
    d = np.zeros((*x.value.shape[:-1], y.value.shape[-2]), np.float32)
    if c is not None:
        d[...] = c
    for batch in np.ndindex(d.shape[:-2]):
        for k in range(0, x.value.shape[-1], kind.k):
            step = (*batch, slice(None), slice(k, k + kind.k))
            of_a, of_b = (Values(v[step], e[step]) for v, e in (x, y))
            d[batch] = _add(of_a, of_b, d[batch])
    return d


def _exponent(value: F64) -> NDArray[np.int64]:
    """Exponent of the leading bit; of what is no finite number, any."""
    return np.frexp(np.where(np.isfinite(value), value, 0))[1].astype(np.int64) - 1


def _add(a: Values, b: Values, c: NDArray[np.float32]) -> NDArray[np.float32]:
    """Execute one instruction."""
    with np.errstate(invalid="ignore", over="ignore"):
        terms = a.value[:, None, :] * b.value[None, :, :]
        exponents = a.exponent[:, None, :] + b.exponent[None, :, :]
        of_c = c.astype(np.float64)[..., None]
        terms = np.concatenate([terms, of_c], axis=-1)
        exponents = np.concatenate(
            [exponents, np.maximum(_exponent(of_c), -126)], axis=-1
        )
        special = terms.sum(axis=-1, where=~np.isfinite(terms))
    finite = np.where(np.isfinite(terms), terms, 0)
    exponents = np.where(finite == 0, ZERO_EXPONENT, exponents)
    unit = exponents.max(axis=-1, keepdims=True) - FRACTION_BITS
    total = np.trunc(np.ldexp(finite, -unit)).sum(axis=-1)
    exact = np.ldexp(total, unit[..., 0])
    d = np.where(special == 0, toward_zero(exact), special).astype(np.float32)
    return np.where(np.isnan(special), NAN, d + np.float32(0))


def toward_zero(exact: F64) -> NDArray[np.float32]:
    """Round float64 to float32 toward zero; 2^128 and more is Inf."""
    with np.errstate(over="ignore", under="ignore"):
        nearest = exact.astype(np.float32)
    beyond = (np.abs(nearest.astype(np.float64)) > np.abs(exact)) & (
        np.abs(exact) < 2.0**128
    )
    return np.where(beyond, np.nextafter(nearest, np.float32(0)), nearest)
