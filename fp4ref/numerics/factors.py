"""factors: A and B of a product as float32 numbers for BLAS, and what bounds them.

A number is an odd integer times a power of two, its *unit*. A row is divided by the
lowest unit in it, so that it holds integers; that is exact, and BLAS then adds
integers. What a proof needs of each row is kept for each *step*, the K of one
instruction.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from fp4ref.numerics.doubts import I32
from fp4ref.numerics.formats import F32, F64, I64, U8

NONE: Final = 4096
"""Unit of what is all zero; minus it, the top."""

MOST_BINADES: Final = 60
"""Binades of a row's numbers above its unit; a wider row is no float32 integer."""

Codes = npt.NDArray[np.unsignedinteger]
Bools = npt.NDArray[np.bool_]


class Table(NamedTuple):
    """What each code of a format is; see `decode_factors.table`.

    Attributes
    ----------
    value
        0 for zero, Inf and NaN.
    unit
        Exponent of the last bit of the value; `NONE` for zero.
    top
        Exponent with which the MMA aligns it, minus `NONE` for zero.
    special
        0 for a number, 1 for Inf, 2 for NaN.
    """

    value: F64
    unit: I64
    top: I64
    special: U8


class E2M1Table(NamedTuple):
    """What each code of E2M1 is, in halves, which are integers.

    Attributes
    ----------
    unit : (16,)
        Of magnitudes whose halves, or-ed together, are the index; `NONE` of 0.
    sums : (16,)
        The square of the halves in bits 0 to 15 and the halves in bits 16 on: squares
        of 16 codes add up below bit 16, and halves are or-ed above.
    halves : (16,)
        With their signs; 0 for -0.
    """

    unit: I64
    sums: I32
    halves: F32


class Factors(NamedTuple):
    """One operand, its rows along M or N.

    Attributes
    ----------
    values : (rows, K)
        In units of 2^base of the row.
    base : (rows,)
        The lowest unit of the row.
    unit, top : (rows, steps)
        Lowest unit and highest exponent of alignment of a step; `NONE` and ``-NONE`` if
        it is all zero.
    square : (rows, steps)
        Sum of the squares of `values`.
    nan : (rows,)
        The row has a NaN, which its outputs are then. Its values are 0.
    apart : (rows,)
        The row has an Inf, or is too wide for float32. Its values are 0.
    """

    values: F32
    base: I64
    unit: I64
    top: I64
    square: F64
    nan: Bools
    apart: Bools

    def rows(self, at: slice | I64, steps: slice) -> Factors:
        """Return some rows and steps; views if `at` is a slice."""
        width = self.values.shape[1] // self.unit.shape[1]
        first, last, _ = steps.indices(self.unit.shape[1])
        return Factors(
            self.values[at, first * width : last * width],
            self.base[at],
            self.unit[at, steps],
            self.top[at, steps],
            self.square[at, steps],
            self.nan[at],
            self.apart[at],
        )
