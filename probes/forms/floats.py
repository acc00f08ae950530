"""floats: float operands where arithmetic goes wrong.

Subnormals, ties, cancellation, and products and quotients around 2^-126 and 2^128.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

U64 = NDArray[np.uint64]
U32 = NDArray[np.uint32]

_F32 = (
    (0x00000000, 0x80000000, 0x3F800000, 0x7F800000, 0x7F800001, 0x00000001, 0x007FFFFF)
    + (0x00800000, 0x7F7FFFFF, 0xBF800000, 0xFF800000, 0x7FC12345, 0x3F7FFFFF)
    + (0x80000001, 0x807FFFFF, 0x80800000, 0xFF7FFFFF, 0xFFFFFFFF, 0x7FFFFFFF)
    + (0x3F000000, 0x40000000, 0x3F800001, 0x3EFFFFFF, 0x01000000, 0x00FFFFFF)
    + (0x7FC00000, 0xFFC00000, 0xFFA00000, 0x00000002, 0x00800001, 0x00400000)
    + (0x7E800000, 0xBF7FFFFF, 0x7F000000, 0x3FC00000, 0x40200000, 0xC0200000)
    + (0x4B800000, 0x4B000000, 0x4B7FFFFF, 0x4EFFFFFF, 0x4F000000, 0xCF000000)
    + (0xCF000001, 0x4F7FFFFF, 0x4F800000, 0x5F000000, 0xDF000000, 0x5F7FFFFF)
    + (0x5F800000, 0x46FFFE00, 0x47000000, 0xC7000000, 0x477FFF00, 0x47800000)
    + (0x42FE0000, 0x43000000, 0xC3000000, 0x437F0000, 0x43800000, 0x43E00000)
    + (0x43E80000, 0x3C800000, 0x3A800000, 0x477FE000, 0x477FEFFF, 0x477FF000)
    + (0x33000000, 0x33000001, 0x38800000, 0x387FC000, 0x1F800000, 0x20000000)
    + (0x40490FDB, 0x80400001, 0xBF000000, 0xBEFFFFFF, 0x00000003, 0x7E7FFFFF)
)
_F16 = (0x0000, 0x8000, 0x3C00, 0x7C00, 0x7C01, 0x0001, 0x03FF, 0x0400, 0x7BFF, 0xBC00)
_F16_MORE = (0xFC00, 0x7E00, 0xFE00, 0x7FFF, 0xFFFF, 0x7D55, 0x8001, 0x83FF, 0xFBFF)

_FRACTION = np.uint32(0x7FFFFF)
_SIGN = np.uint32(0x80000000)
_EDGES = (0x3F800000, 0x00800000, 0x3F000000, 0x01000000, 0x40000000, 0, 0x3FFFFFFF)
_POWERS = (0x00FFFFFF, 0x4F000000, 0x5F000000, 0x47000000, 0x43000000, 0x7F7FFFFF)


def corners(kind: str) -> U64:
    """Return the corner values of ``f32``, ``f16`` or ``bf16``."""
    if kind == "f16":
        return np.array((*_F16, *_F16_MORE), np.uint64)
    if kind == "bf16":
        return np.array(list(dict.fromkeys(v >> 16 for v in _F32)), np.uint64)
    return np.array(_F32, np.uint64)


def domains(words: list[U64], domain: NDArray[np.int64]) -> list[U64]:
    """Return float32 operands of eight domains, from random words."""
    bits = [w.astype(np.uint32) for w in words]
    more = [(w >> np.uint64(32)).astype(np.uint32) for w in words]
    near = [_near(b) for b in bits]
    makers = (
        bits,
        [_halves(b) for b in bits] if len(bits) == 1 else near,
        near,
        [b & np.uint32(0xFFFFF000) for b in near],
        _cancelling(near, more) if len(bits) > 1 else [_around(b) for b in bits],
        [_around(b, len(_EDGES)) for b in bits],
        _scaled(bits, more, -126),
        _scaled(bits, more, 127),
    )
    return [
        np.choose(domain, [made[i] for made in makers]).astype(np.uint64)
        for i in range(len(bits))
    ]


def _near(bits: U32) -> U32:
    """Exponents from -7 to 0."""
    return bits & np.uint32(0x83FFFFFF) | np.uint32(0x3C000000)


def _halves(bits: U32) -> U32:
    """Multiples of 1/8 up to 2^16, where small integer types end."""
    eighths = (bits & np.uint32(0xFFFFF)).astype(np.float32) - np.float32(0x80000)
    return (eighths / np.float32(8)).view(np.uint32)


def _around(bits: U32, count: int = len(_EDGES) + len(_POWERS)) -> U32:
    """Up to four units around a power of two or an end of the range."""
    edges = np.array(_EDGES + _POWERS, np.uint32)
    place = (bits >> np.uint32(8) & np.uint32(0xFF)) % np.uint32(count)
    offset = (bits >> np.uint32(16) & np.uint32(0xFF)) % np.uint32(9)
    with np.errstate(over="ignore"):
        found = edges[place] + offset - np.uint32(4)
    return found & ~_SIGN | bits & _SIGN


def _cancelling(near: list[U32], more: list[U32]) -> list[U32]:
    """The last operand is minus the first, or minus the product, nearly."""
    values = [n.view(np.float32) for n in near]
    opposite = -(values[0] * values[1] if len(near) > 2 else values[0])
    offset = more[-1] & np.uint32(7)
    with np.errstate(over="ignore"):
        last = opposite.view(np.uint32) + offset - np.uint32(3)
    return [*near[:-1], last]


def _scaled(bits: list[U32], more: list[U32], exponent: int) -> list[U32]:
    """Exponents, or their sums or differences, about `exponent`."""
    drift = [(m % np.uint32(30)).astype(np.int64) - 26 for m in more]
    if exponent > 0:
        drift = [d // 8 + 1 for d in drift]
    spread = (more[0] >> np.uint32(8)).astype(np.int64) % 120
    first = exponent // 2 + spread - 60 if len(bits) > 1 else exponent + drift[0]
    second = exponent - first + drift[-1]
    if len(bits) == 2:
        # In half of the pairs the quotient, not the product, has this exponent.
        second = np.where(more[0] >> np.uint32(31) == 0, second, -second)
    exponents = [first, second, exponent + drift[-1]][: len(bits)]
    return [
        b & ~np.uint32(0x7F800000)
        | np.clip(e + 127, 0, 254).astype(np.uint32) << np.uint32(23)
        for b, e in zip(bits, exponents, strict=True)
    ]
