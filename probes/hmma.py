"""hmma: Hopper's f16 MMA against the family of models that the FP4 MMA belongs to.

T-FDPA: all K products and C are exact, each is truncated toward zero at 25 fraction
bits below the largest exponent, the sum is exact, and the result is truncated to
float32. tcgen05 kind::mxf4nvf4 has 35 bits and groups of 16 products; its arithmetic
cannot be measured on Hopper, the family can.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from fp4ref.device import Call, Pointer
from fp4ref.trace import Bytes
from probes.probe import Case, Outputs, Probe, blank, pattern

TILES = 64
FRACTION_BITS = 25
ZERO_EXPONENT = -133
I64 = NDArray[np.int64]


def _f16(seed: int, tiles: int, low: int, high: int, count: int) -> Bytes:
    """Return f16 patterns with exponent fields low..high, one in eight a zero."""
    raw = pattern(seed, tiles * count)
    exponent = low + (raw >> np.uint64(20)) % np.uint64(high - low + 1)
    bits = (raw & np.uint64(0x83FF)) | exponent << np.uint64(10)
    zero = (raw >> np.uint64(40)) % np.uint64(8) == 0
    return np.where(zero, 0, bits).astype(np.uint16).view(np.uint8)


def _f32(seed: int, tiles: int, low: int, high: int, count: int) -> Bytes:
    raw = pattern(seed, tiles * count)
    exponent = low + (raw >> np.uint64(32)) % np.uint64(high - low + 1)
    bits = (raw & np.uint64(0x807FFFFF)) | exponent << np.uint64(23)
    return bits.astype(np.uint32).view(np.uint8)


def cases() -> Iterator[Case]:
    """Narrow, wide and subnormal operands beside small and large C."""
    ranges = {
        "narrow": (13, 17, 120, 134),
        "wide": (1, 30, 90, 150),
        "subnormal": (0, 6, 80, 110),
        "large C": (10, 20, 140, 160),
        "all finite": (0, 30, 0, 250),
    }
    for seed, (name, (low, high, c_low, c_high)) in enumerate(ranges.items()):
        call = Call(
            "hmma",
            {
                "a": _f16(3 * seed, TILES, low, high, 256),
                "b": _f16(3 * seed + 1, TILES, low, high, 128),
                "c": _f32(3 * seed + 2, TILES, c_low, c_high, 128),
                "d": blank(TILES * 512),
            },
            (Pointer("a"), Pointer("b"), Pointer("c"), Pointer("d")),
            grid=(TILES, 1, 1),
        )
        yield Case(name, call, ("d",))


def _decode(bits: NDArray[np.uint32], significand: int, bias: int) -> tuple[I64, I64]:
    """Signed significand with the hidden bit, and the exponent of its unit bit."""
    wide = bits.astype(np.int64)
    exponent_bits = 5 if significand == 10 else 8
    field = wide >> significand & (1 << exponent_bits) - 1
    fraction = wide & (1 << significand) - 1
    magnitude = fraction | np.where(field > 0, 1 << significand, 0)
    negative = wide >> (significand + exponent_bits) & 1
    return np.where(negative == 1, -magnitude, magnitude), np.maximum(field, 1) - bias


def t_fdpa(
    a: NDArray[np.uint16],
    b: NDArray[np.uint16],
    c: NDArray[np.uint32],
    fraction_bits: int = FRACTION_BITS,
) -> NDArray[np.uint32]:
    """Return D of one m16n8k16 per leading index: a (..., 16, 16), b (..., 16, 8)."""
    ma, ea = _decode(a.astype(np.uint32)[..., :, None, :], 10, 15)
    mb, eb = _decode(np.swapaxes(b, -1, -2).astype(np.uint32)[..., None, :, :], 10, 15)
    mc, ec = _decode(c[..., None], 23, 127)
    product = ma * mb
    exponent = np.where(product == 0, ZERO_EXPONENT, ea + eb)
    c_exponent = np.where(mc == 0, ZERO_EXPONENT, ec)
    terms = np.concatenate([product << 3, mc], axis=-1)  # both in units of 2^-23
    exponents = np.concatenate([exponent, c_exponent], axis=-1)
    largest = exponents.max(axis=-1, keepdims=True)
    shift = exponents - largest + fraction_bits - 23
    magnitude = np.abs(terms)
    aligned = np.where(
        shift >= 0,
        magnitude << np.maximum(shift, 0),
        magnitude >> np.clip(-shift, 0, 62),
    )
    total = np.where(terms < 0, -aligned, aligned).sum(axis=-1)
    return _truncate(total, largest[..., 0] - fraction_bits)


def _truncate(total: I64, exponent: I64) -> NDArray[np.uint32]:
    """Return total * 2^exponent as float32 bits, toward zero."""
    magnitude = np.abs(total)
    # frexp is exact below 2^53; the sums have at most 35 bits.
    length = np.frexp(magnitude.astype(np.float64))[1].astype(np.int64)
    top = length - 1 + exponent
    shift = exponent - (np.maximum(top, -126) - 23)
    fitted = np.where(
        shift >= 0,
        magnitude << np.clip(shift, 0, 40),
        magnitude >> np.clip(-shift, 0, 62),
    )
    normal = (top + 127 << 23) | fitted & 0x7FFFFF
    bits = np.where(top < -126, fitted, normal)
    bits = np.where(top > 127, 0x7F800000, bits)
    bits = np.where(total < 0, bits | 1 << 31, bits)
    return np.where(total == 0, 0, bits).astype(np.uint32)


def emulate(case: Case) -> Outputs:
    """The model, on the inputs of the case."""
    buffers = case.call.buffers
    a = buffers["a"].view(np.uint16).reshape(TILES, 16, 16)
    b = buffers["b"].view(np.uint16).reshape(TILES, 16, 8)
    c = buffers["c"].view(np.uint32).reshape(TILES, 16, 8)
    return {"d": t_fdpa(a, b, c).view(np.uint8).ravel()}


PROBE = Probe("hmma", tuple(cases()), emulate)
