"""doubts: what tells an output whose bits a slab may not give."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fp4ref.numerics.formats import F32, F64

I32 = npt.NDArray[np.int32]

Sums = F32 | F64
"""Products of a slab."""


class Masks(NamedTuple):
    """Which outputs matter: all, unless both numbers are 0.

    Attributes
    ----------
    rows, columns : (rows,), (columns,)
        The magnitude bits of float32, or 0.
    """

    rows: I32
    columns: I32


class Doubts(NamedTuple):
    """What decides whether truncating terms can change an output of one step.

    Attributes
    ----------
    unit_a, unit_b : (rows,), (columns,)
        Their products divide every product of the step.
    top_a, top_b
        Their products are at least 2^e_max of the products.
    fraction_bits
        Kept below 2^e_max.
    margin
        In units of the last kept bit: more than all truncations together.
    """

    unit_a: F64
    unit_b: F64
    top_a: F64
    top_b: F64
    fraction_bits: int
    margin: int
