"""dot_lanes: chains of the MMAs without scales, for many columns of D at once.

`dot_unscaled.multiply_terms` is the definition and gives the same bits; `dot_lanes_jit`
says why. Without Numba it does the work.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fp4ref.numerics.decoded_operands import Terms
from fp4ref.numerics.dot_unscaled import multiply_terms
from fp4ref.numerics.formats import F32

if TYPE_CHECKING:
    from fp4ref.numerics.dot_lanes_jit import Lanes


def multiply_lanes(a: Terms, b: Terms, k_step: int, c: F32 | None) -> F32:
    """Return ``A B^T + C`` of operands in integers, `k_step` elements at a time.

    Parameters
    ----------
    a : (M, K)
        The caller has checked that shapes agree.
    b : (N, K)
    c : (M, N), optional
        None stands for +0.
    """
    from fp4ref.numerics import compiled, dot_lanes_jit

    if not compiled.AVAILABLE:
        return multiply_terms(a, b, k_step, c)
    m, n = len(a.significand), len(b.significand)
    d = np.zeros((m, n), np.float32) if c is None else np.array(c, order="C")
    of = lanes(a), lanes(b, transposed=True)
    least = compiled.SERIAL_LIMIT // max(n * a.significand.shape[1], 1)
    compiled.in_pieces(dot_lanes_jit.chain_rows, m, least, of, (a, b), k_step, d)
    return d


def lanes(terms: Terms, *, transposed: bool = False) -> Lanes:
    """Return an operand for `dot_lanes_jit`."""
    from fp4ref.numerics.dot_lanes_jit import NEAR, NOTHING, Lanes
    from fp4ref.numerics.dot_unscaled_jit import SPECIAL

    live = terms.significand != 0
    far = np.abs(terms.exponent) > NEAR
    plain = ~((live | (terms.exponent > SPECIAL)) & far).any(axis=1)
    kept = live & plain[:, np.newaxis]
    place = np.where(kept, terms.exponent - terms.mantissa_bits, 0)
    values = np.ldexp(np.where(kept, terms.significand, 0).astype(np.float32), place)
    exponent = np.where(kept, terms.exponent, NOTHING).astype(np.int32)
    if transposed:
        values, exponent = (np.ascontiguousarray(x.T) for x in (values, exponent))
    return Lanes(values, exponent, plain)
