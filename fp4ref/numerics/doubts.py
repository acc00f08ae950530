"""doubts: what tells an output of one step that truncated terms can change."""

from __future__ import annotations

from typing import NamedTuple

from fp4ref.numerics.formats import F32, F64

Sums = F32 | F64
"""Products of a slab."""


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
