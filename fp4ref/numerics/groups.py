"""groups: a chain of block-scaled instructions by integer sums of groups.

Without Numba `one_step` does this by BLAS. Of one output of one instruction,

1. the sum of a group's 16 products is an integer of at most 16 * 144, an int16;
2. times both scales, of four bits each, it is a term of at most 20 bits, exact in
   float64;
3. C plus the four terms is rounded four times in float64. Each sum is below
   2^(e_max + 14), so that all roundings together are less than a quarter of the last
   kept bit, 2^(e_max - 35). Of the five, the one with e_max loses nothing, the others
   less than one such bit each. The model's sum before RZ is therefore less than
   `MARGIN` such bits from that in float64;
4. if both ends of that room have the same upper 24 bits, so has the model's sum. Where
   no term and not C has a bit below the last kept one, and float64 holds the sum, the
   room is nothing;
5. what remains, and what is zero, below 2^-111, infinite or NaN, is computed by
   `dot_jit.gst_fdpa`, the definition.

e_max of a term is that of its scales, also where its products are all zero, which only
widens the room.
"""

from __future__ import annotations

from functools import cache
from typing import Final

import numpy as np

from fp4ref.numerics.decoded_operands import GROUP, scale_table
from fp4ref.numerics.elements import ScaleFormat
from fp4ref.numerics.formats import F32, U8
from fp4ref.numerics.sides import NO_UNIT, Chain, ScaleNumbers, Side

MARGIN: Final = 4.25
"""Last kept bits by which the sum in float64 can differ from that of the model."""

KEPT_BITS: Final = 35
"""Below the largest exponent."""

LANES: Final = 1024
"""Columns of D in one pass at most. A group of B, 32 KB, stays in the first cache for
all rows of a pass; of fewer columns, a call for each row took more than that gave."""


@cache
def scale_numbers(scale_format: ScaleFormat) -> ScaleNumbers:
    """Return the numbers of a format of scales."""
    significand, exponent = scale_table(scale_format)
    live = significand > 0
    lowest = np.where(live, significand & -significand, 1)
    last = exponent - 3 + np.log2(lowest).astype(np.int64)
    return ScaleNumbers(
        np.where(live, np.ldexp(significand / 2.0, exponent - 3), 0.0),
        np.where(live, np.ldexp(1.0, exponent), 0.0),
        np.where(live, np.ldexp(1.0, last - 1), NO_UNIT),
        last - 1,
        significand,
        exponent,
        scale_format is ScaleFormat.UE4M3,
    )


def lanes_of(columns: int) -> int:
    """Return how many columns of B make a block, so that the blocks are much alike."""
    blocks = max(-(-columns // LANES), 1)
    return max(-(-columns // (16 * blocks)) * 16, 16)


def side(
    codes: U8, scales: U8, vec_size: int, numbers: ScaleNumbers, lanes: int = 1
) -> Side:
    """Lay out one operand for `groups_jit`.

    Parameters
    ----------
    codes : (rows, K)
        K is a multiple of 64.
    scales : (rows, K / vec_size)
    lanes
        1 for A, `lanes_of` for B, which is cut into blocks of so many columns; the
        last is filled with zeros.
    """
    from fp4ref.numerics import compiled, group_sums_jit, groups_jit

    rows, k = codes.shape
    scales = np.repeat(scales, vec_size // GROUP, axis=1)
    blocks = -(-rows // lanes)
    found = Side(
        compiled.read_only(codes),
        scales,
        np.zeros((blocks, k // GROUP, lanes)),
        np.full((blocks, k // GROUP, lanes), group_sums_jit.DEAD),
        np.full((blocks, k // GROUP, lanes), -group_sums_jit.DEAD),
        np.zeros((blocks, k, lanes) if lanes > 1 else (0, 0, 0), np.int16),
    )
    compiled.in_pieces(
        groups_jit.lay_rows, rows, compiled.PASS // max(k, 1), found, numbers
    )
    return found


def add_chain(
    a: Side, b: Side, steps: slice, c: F32, numbers: ScaleNumbers, clean: bool
) -> int:
    """Add instructions to C in place.

    Parameters
    ----------
    c : (rows of A, rows of B)
        C-contiguous.
    clean
        C is zero or comes from the model, so that an instruction of zeros leaves it.

    Returns
    -------
    int
        Outputs of one instruction that the definition computed.
    """
    from fp4ref.numerics import compiled, groups_jit

    chain = Chain(a, b, numbers, *_kept(), clean, clean and numbers.narrow)
    least = max(compiled.PASS // max(2 * c.shape[1], 1), groups_jit.CHUNK)
    loop = groups_jit.chain_rows
    return sum(
        compiled.in_pieces(loop, len(c), least, chain, steps.start, steps.stop, c)
    )


def add_instruction(
    a: U8, b: U8, sfa: U8, sfb: U8, vec_size: int, c: F32, of: ScaleNumbers, clean: bool
) -> None:
    """Add one instruction to C in place, on the calling thread.

    Parameters
    ----------
    a, b : (rows, 64)
    sfa, sfb : (rows, 64 / vec_size)
    c, clean
        As for `add_chain`.
    """
    from fp4ref.numerics import compiled, groups_jit

    a, b, sfa, sfb = (compiled.read_only(each) for each in (a, b, sfa, sfb))
    lanes, tame = lanes_of(len(b)), clean and of.narrow
    groups_jit.add_instruction(
        a, b, sfa, sfb, c, vec_size, lanes, of, *_kept(), clean, tame
    )


def _kept() -> tuple[float, float]:
    """Return the last kept bit of a sum with e_max 0, and the margin."""
    return 2.0**-KEPT_BITS, MARGIN * 2.0**-KEPT_BITS
