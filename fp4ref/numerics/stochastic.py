"""stochastic: rounding with given random bits, as ``cvt.rs`` has it.

PTX: the magnitude is rounded away from zero exactly if adding the random bits to the
mantissa bits that are dropped carries. An element has 16 random bits, of f16 it has 13,
as many as a normal number drops there. They are added to the highest of the dropped
bits, and bits below these take no part. So 0 truncates, and all ones round up what
exceeds the smaller neighbour by one unit of the random bits or more.

PTX draws in figures alone which of the instruction's 32 bits belong to which element.
Two elements share 16 bits, and the first of them takes these in reversed order. Two
projects found that on a B200, each for itself: FlashInfer for E4M3, whose software
agreed with the card for 22,528 inputs, and an emulator for E4M3, E5M2 and E2M1. For
formats of 6 bits PTX has the figure of those of 8.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fp4ref.arguments import require_choice
from fp4ref.errors import InputError
from fp4ref.numerics.element import Codes
from fp4ref.numerics.elements import element
from fp4ref.numerics.formats import U32, require_bits, require_float32

U16 = npt.NDArray[np.uint16]
FORMATS = ("e2m1", "e2m3", "e3m2", "e4m3", "e5m2", "f16", "bf16")
_FRACTION = 23
_BIAS = 127


def random_width(format: str) -> int:
    """Return how many random bits an element has."""
    return 13 if format == "f16" else 16


def encode_stochastic(
    x: npt.ArrayLike, random_bits: npt.ArrayLike, format: str
) -> Codes:
    """Round to a format stochastically. PTX: ``cvt.rs``.

    NaN and Inf are those of the conversion to nearest: formats of 8 bits and less
    saturate, wider ones overflow to Inf, and NaN has no sign. -0 stays.

    Parameters
    ----------
    x
        float32.
    random_bits
        uint16 of the same shape; of f16 the 13 lowest count.
    format
        One of `FORMATS`.

    Raises
    ------
    InputError
        A wrong type, the shapes differ, or no such format.
    """
    to = element(require_choice(format, "format", FORMATS))
    values = require_float32(x, "encode_stochastic x")
    bits = require_bits(random_bits, "encode_stochastic random_bits", np.uint16)
    if bits.shape != values.shape:
        raise InputError(
            f"encode_stochastic random_bits: shape {bits.shape}, x {values.shape};"
            " need 16 bits for each element"
        )
    width = random_width(format)
    pattern = np.ascontiguousarray(values).view(np.uint32).astype(np.int64)
    exponent = np.maximum(pattern >> _FRACTION & 0xFF, 1)
    significand = pattern & (1 << _FRACTION) - 1
    significand += (pattern >> _FRACTION & 0xFF > 0) * (1 << _FRACTION)
    above = exponent - _BIAS + to.bias - 1  # binades above the format's lowest one
    # From 40 dropped bits on nothing carries: a significand has 24, the random bits 16.
    dropped = np.minimum(_FRACTION - to.mantissa_bits + np.maximum(-above, 0), 40)
    random = bits.astype(np.int64) & (1 << width) - 1
    kept = significand + (random << dropped - width) >> dropped
    code = kept + (np.maximum(above, 0) << to.mantissa_bits)
    special = (1 << to.exponent_bits) - 1 << to.mantissa_bits  # Inf, where it is one
    highest = special if to.bits == 16 else int(to.encode(np.float32(np.inf)))
    code = np.minimum(code, highest) | (pattern >> 31) * to.sign
    nan = int(to.encode(np.float32(np.nan)))
    return np.where(np.isnan(values), nan, code).astype(to.code_dtype)


def random_fields(word: npt.ArrayLike, format: str) -> tuple[U16, ...]:
    """Return the random bits of each element of a ``cvt.rs``, in order of operands.

    Parameters
    ----------
    word
        uint32: the operand ``rbits``.
    format
        The elements' format: two of 16 bits, or four.
    """
    bits: U32 = np.asarray(word, np.uint32)
    high, low = (bits >> np.uint32(16)).astype(np.uint16), bits.astype(np.uint16)
    if format in ("f16", "bf16"):
        mask = np.uint16((1 << random_width(format)) - 1)
        return high & mask, low & mask
    if format == "e2m1":
        # The first pair has the upper byte of each half, the second the lower ones.
        top, bottom = np.uint16(0xFF00), np.uint16(0xFF)
        high, low = (
            high & top | low >> np.uint16(8),
            high << np.uint16(8) | low & bottom,
        )
    return _reversed(high), high, _reversed(low), low


def _reversed(bits: U16) -> U16:
    """Return 16 bits in the other order."""
    found = np.zeros_like(bits)
    for i in range(16):
        found |= (bits >> np.uint16(i) & np.uint16(1)) << np.uint16(15 - i)
    return found
