"""one_step: one instruction's K of a product by BLAS, in float32 or float64.

The proofs are in `tiers`.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from fp4ref.numerics import slabs
from fp4ref.numerics.blas_threads import multiply
from fp4ref.numerics.doubts import Doubts, Sums
from fp4ref.numerics.factors import Factors
from fp4ref.numerics.formats import F32, F64, I64
from fp4ref.numerics.integer_models import IntegerModel

FLOAT32_BITS: Final = 24
"""A sum of at most 2^24 units is exact in float32."""

FLOAT64_BITS: Final = 53
"""A sum of at most 2^53 units is exact in float64."""

MARGIN: Final = 8
"""Last kept bits by which truncations can move a sum: five terms lose less than one
each, float64 less than one in all."""

_LEAST: Final = -126
_TOO_MANY: Final = 16
"""Outputs of a step for each that may be doubtful; more, and the step is integers'."""

_FAR: Final = 500
"""Exponent beyond all that occur; two of them add up inside float64."""

_ROUND_UP: Final = 1 + 2.0**-30
"""On norms, whose sums and roots are rounded."""


def norms(of: Factors, steps: int) -> F64:
    """Return an upper bound of the norms of slabs of `steps`, (rows, slabs)."""
    starts = range(0, of.square.shape[1], steps)
    bounds: F64 = np.sqrt(np.add.reduceat(of.square, starts, axis=1)) * _ROUND_UP
    return bounds


def is_lossless(a: Factors, b: Factors, fraction_bits: int) -> bool:
    """Whether no term of any step loses bits, with sums that started at zero.

    Then every number is a multiple of u. Terms and C lose nothing if their exponents
    are at most ``log2 u + fraction_bits``.
    """
    least, most = a.base.min() + b.base.min(), a.base.max() + b.base.max()
    top = a.top.max() + b.top.max()
    sums = norms(a, a.unit.shape[1]).max() * norms(b, b.unit.shape[1]).max()
    return bool(
        top <= least + fraction_bits
        and sums * 2.0 ** float(most - least) < 2.0 ** (fraction_bits + 1)
        and least >= _LEAST
        and most + fraction_bits + 1 <= 127
    )


def add_step(
    model: IntegerModel,
    a: Factors,
    b: Factors,
    at: tuple[I64, I64],
    step: int,
    c: F32,
    lossless: bool = False,
) -> int:
    """Add one step to C in place.

    Parameters
    ----------
    a, b
        Of this step alone, none of whose rows is `Factors.apart` or `Factors.nan`.
    at, step
        Where they are in the model's operands.
    c : (rows, columns)
        Any float32.
    lossless
        It is known that no term loses bits, and that no result is subnormal or
        infinite.

    Returns
    -------
    int
        Outputs that the integer model computed.
    """
    fine_a, fine_b = (
        float((norms(f, 1)[:, 0] * np.exp2(f.base - f.unit[:, 0])).max())
        for f in (a, b)
    )
    if fine_a * fine_b <= 2.0**FLOAT32_BITS:
        slab: Sums = multiply(a.values, b.values)
    elif fine_a * fine_b <= 2.0**FLOAT64_BITS:
        slab = multiply(a.values.astype(np.float64), b.values.astype(np.float64))
    else:
        c[:] = model.tile(*at, slice(step, step + 1), c)
        return c.size
    factors = np.exp2(a.base), np.exp2(b.base)
    if lossless:
        slabs.add_truncated(c, slab, *factors)
        return 0
    doubts = Doubts(
        np.exp2(np.minimum(a.unit[:, 0], _FAR)),
        np.exp2(np.minimum(b.unit[:, 0], _FAR)),
        np.exp2(np.maximum(a.top[:, 0], -_FAR)),
        np.exp2(np.maximum(b.top[:, 0], -_FAR)),
        model.fraction_bits,
        MARGIN if model.fraction_bits == 35 else 1 << 40,
    )
    before = c.copy()
    marks = slabs.add_doubted(c, slab, *factors, doubts)
    if marks is None:
        return 0
    rows, columns = np.divmod(np.flatnonzero(marks), marks.shape[1])
    if len(rows) * _TOO_MANY > c.size:
        c[:] = model.tile(*at, slice(step, step + 1), before)
        return c.size
    c[rows, columns] = model.outputs(
        at[0][rows], at[1][columns], step, before[rows, columns]
    )
    return len(rows)
