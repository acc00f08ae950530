"""sides: A and B of a block-scaled product, laid out for sums of groups."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from fp4ref.numerics.formats import F64, I64, U8

I16 = npt.NDArray[np.int16]

NO_UNIT: Final = 2.0**500
"""Unit of what is all zero."""


class ScaleNumbers(NamedTuple):
    """What each code of a scale is.

    Attributes
    ----------
    value : (256,)
        Half of it, as elements are counted in halves; 0 for NaN.
    power, unit
        2^exponent, and half the last bit; 0 and `NO_UNIT` for zero and NaN.
    unit_exponent
        Of the unit.
    significand, exponent
        Of `decoded_operands`.
    narrow
        Chains that start at zero have no sum that is subnormal or infinite.
    """

    value: F64
    power: F64
    unit: F64
    unit_exponent: I64
    significand: I64
    exponent: I64
    narrow: bool


class Side(NamedTuple):
    """A or B of a product.

    Attributes
    ----------
    codes : (rows, K)
    scales : (rows, K / 16)
        Codes, one for each group.
    value : (blocks, K / 16, lanes)
        `ScaleNumbers.value`. A row of A is a block of one lane.
    exponent, unit : (blocks, K / 16, lanes)
        Of the scale; `groups_jit.DEAD` and minus it where the group or its scale is
        zero, or NaN.
    halves : (blocks, K, lanes)
        Twice each element; of B alone.
    """

    codes: U8
    scales: U8
    value: F64
    exponent: I16
    unit: I16
    halves: I16


class Chain(NamedTuple):
    """A chain of instructions.

    Attributes
    ----------
    a, b
        Laid out.
    numbers
        Of both sides' scales.
    last, place
        The last kept bit of a sum with e_max 0, and `groups.MARGIN` times it.
    clean
        C is zero or comes from the model, so that an instruction of zeros leaves it.
    tame
        No sum can be infinite or subnormal.
    """

    a: Side
    b: Side
    numbers: ScaleNumbers
    last: float
    place: float
    clean: bool
    tame: bool
