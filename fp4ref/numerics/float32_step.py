"""float32_step: rows of one block-scaled instruction in float32, where that is exact.

Let u be the units of a row of A and of a column of B multiplied: a power of two that
divides all products of one output. A row is computed here if for all its outputs

1. ``|a| |b|`` is at most 2^24 u. Then every partial sum of the products is exact in
   float32, by Cauchy and Schwarz;
2. D plus that sum is exact, which TwoSum tells;
3. D is at most 2^35 u. By point 1 the exponents of groups are less. So the model, which
   keeps 35 bits below the largest exponent, truncates no group;
4. D is zero, or the sum is at least 2^-12 of the largest power of the scales. Then the
   last bit of the sum is at most 35 below that power. So is the last bit of D, as D is
   the sum less products, of which point 1 says the same.

So the model truncates nothing, and its sum is the one here: RZ leaves a number that
float32 holds. An exact zero is +0 in both, as the sum starts with +0. Rows with an Inf
or NaN in D fail point 2, those with a scale that is NaN point 1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fp4ref.numerics.elements import ScaleFormat
from fp4ref.numerics.factors import Bools
from fp4ref.numerics.formats import F32, U8
from fp4ref.numerics.groups import scale_numbers


class PackedStep(NamedTuple):
    """The operands of one instruction, as shared memory and TMEM hold them.

    Attributes
    ----------
    a : (M, 32)
        Two E2M1 codes a byte.
    b : (N, 32)
    sfa : (M, 64 / vec_size)
        Scale codes.
    sfb : (N, 64 / vec_size)
    negate
        Whether all signs of A and of B change.
    """

    a: U8
    b: U8
    sfa: U8
    sfb: U8
    negate: tuple[bool, bool]
    scale_format: ScaleFormat
    vec_size: int


def add_step(step: PackedStep, d: F32, at: tuple[int, int]) -> Bools | None:
    """Add an instruction to a block of D, row by row where that is exact.

    Parameters
    ----------
    d
        C-contiguous; its block of (M, N) starts `at` a row and a column.

    Returns
    -------
    (M,) or None
        The rows that are left as they were; None if all is done.
    """
    from fp4ref.numerics import compiled, float32_step_jit

    a, b, sfa, sfb = (compiled.read_only(each) for each in step[:4])
    negate_a, negate_b = step.negate
    signs = (-1.0 if negate_a else 1.0), (-1.0 if negate_b else 1.0)
    left = np.empty(len(a), np.bool_)
    numbers = scale_numbers(step.scale_format)
    count = float32_step_jit.add_step((a, b), signs, (sfa, sfb), numbers, d, at, left)
    return left if count else None
