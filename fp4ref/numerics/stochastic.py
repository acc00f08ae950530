"""stochastic: rounding to E2M1 with given random bits, as ``cvt.rs`` has it.

PTX: the magnitude is rounded away from zero exactly if adding the random bits to the
mantissa bits that are dropped carries. An element has 8 random bits, the instruction 32
for four elements; they are added to the 8 highest of the dropped bits, and bits below
these take no part. So 0 truncates, and 0xFF rounds up all that exceeds the smaller
neighbour by 1/256 of a step or more. Which byte of the instruction's 32 bits belongs to
which element is the caller's affair. Not measured: no card with the instruction was at
hand. TransformerEngine draws 8 bits an element too.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fp4ref.errors import InputError
from fp4ref.numerics.formats import F32, U8, require_codes, require_float32

_SIX = np.float32(6)


def encode_e2m1_stochastic(x: npt.ArrayLike, random_bits: npt.ArrayLike) -> U8:
    """Round to E2M1 stochastically. PTX: ``cvt.rs.satfinite.e2m1x4.f32``.

    Saturates to 6; NaN of either sign gives 0x7, -0 gives 0x8.

    Parameters
    ----------
    x
        float32.
    random_bits
        uint8 of the same shape, 8 bits an element.

    Raises
    ------
    InputError
        A wrong type, or the shapes differ.
    """
    values: F32 = require_float32(x, "encode_e2m1_stochastic x")
    bits = require_codes(random_bits, "encode_e2m1_stochastic random_bits")
    if bits.shape != values.shape:
        raise InputError(
            f"encode_e2m1_stochastic random_bits: shape {bits.shape}, x {values.shape};"
            " need one byte for each element"
        )
    nan = np.isnan(values)
    magnitude = np.where(nan, _SIX, np.minimum(np.abs(values), _SIX))
    # In steps of the binade: 0.5 below 2, 1 below 4, 2 up to 6. Exact: powers of two.
    doublings = (magnitude >= 2).astype(np.int32) + (magnitude >= 4)
    steps = np.ldexp(magnitude, 1 - doublings)
    kept = np.floor(steps)
    dropped = np.floor((steps - kept) * 256).astype(np.int32)  # the 8 highest bits
    code = (kept + 2 * doublings).astype(np.int32) + (dropped + bits >= 256)
    negative = np.signbit(values) & ~nan
    signed: U8 = (code | np.where(negative, 8, 0)).astype(np.uint8)
    return signed
