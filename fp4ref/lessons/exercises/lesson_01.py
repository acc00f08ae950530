"""lesson_01: exercises on codes, scales and the quantisation rule."""

from __future__ import annotations

import numpy as np

from fp4ref.lessons.exercise import exercise
from fp4ref.numerics import (
    ScaleFormat,
    decode_e2m1,
    encode_e2m1,
    encode_ue4m3,
    mma_block_scaled,
    pack_e2m1,
)


@exercise(
    "01.1",
    title="Values of the three largest E2M1 codes",
    frames=("7.7",),
    hints=(
        "The bits: sign, two of exponent, one of mantissa. The exponent's bias is 1.",
        "0b0101 has exponent 0b10 and mantissa 1: 2^(2 - 1) times 1.5.",
        "There is no code for infinity or NaN: the last one is a number too.",
    ),
    # The claim that 0b0110 is 3 and 0b0111 is 4; integers; a last code that is special.
    wrong=([2.0, 3.0, 4.0], [5.0, 6.0, 7.0], [3.0, 4.0, float("inf")]),
)
def largest_codes() -> list[float]:
    """Decode them."""
    codes = np.array([0b0101, 0b0110, 0b0111], np.uint8)
    return [float(value) for value in decode_e2m1(codes)]


def _scale_byte(amax: float, g: float, largest: float) -> int:
    factor = np.float32(g) * (np.float32(1) / np.float32(largest))
    return int(encode_ue4m3(np.float32(amax) * factor))


@exercise(
    "01.2",
    title="The scale of a block",
    frames=("7.7",),
    hints=(
        "The scale is the number that the largest code, 6, is multiplied by.",
        "g multiplies on the way in: the scaled block has the maximum amax * g.",
        "`encode_ue4m3` takes a float32 and rounds to nearest; do not round yourself.",
    ),
    wrong=(
        lambda amax, g: _scale_byte(amax, g, 7.0),
        lambda amax, g: _scale_byte(amax, 1 / g, 6.0),
        lambda amax, g: _scale_byte(amax, g, 1.0),
    ),
    cases=lambda: [(6.0, 1.0), (2.5, 400.0), (0.07, 430.08), (1e-5, 3.0), (0.0, 8.0)],
)
def scale_byte(amax: float, g: float) -> int:
    """Map amax * g onto 6, and round to nearest."""
    return _scale_byte(amax, g, 6.0)


@exercise(
    "01.3",
    title="Two elements in a byte",
    hints=(
        "-0.5 has the sign bit and the smallest magnitude; 3 is 0b0101.",
        "The element of even k is in the low nibble.",
    ),
    # Nibbles exchanged; the sign forgotten.
    wrong=(0x95, 0x51),
)
def packed_byte() -> int:
    """Encode both and pack them."""
    return int(pack_e2m1(encode_e2m1(np.array([-0.5, 3], np.float32)))[0])


@exercise(
    "01.4",
    title="What the scales multiply",
    frames=("6.6.6", "6.6.7"),
    hints=(
        "A row has one scale for each 16 elements of K, so four in one MMA.",
        "Only the first 16 products are multiplied by 1.5 * 2.",
    ),
    # One pair of numbers for the whole product; no scale; A's alone; B's alone.
    wrong=(192.0, 64.0, 72.0, 80.0),
)
def scaled_product() -> float:
    """Ask the integer model of the MMA."""
    ones = encode_e2m1(np.ones((1, 64), np.float32))
    sfa = encode_ue4m3(np.array([[1.5, 1, 1, 1]], np.float32))
    sfb = encode_ue4m3(np.array([[2, 1, 1, 1]], np.float32))
    d = mma_block_scaled(
        ones, ones, sfa, sfb, None, scale_format=ScaleFormat.UE4M3, vec_size=16
    )
    return float(d[0, 0])
