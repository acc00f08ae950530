"""rounding: one rounding of a float64 to a narrower float, in any of four directions.

The float64 is the exact result, or it is rounded to odd
(`fp4ref.numerics.arithmetic.add_round_to_odd`): its last bit then tells that the exact
result lies beside it, and no direction goes wrong.
Source: PTX, Floating-point rounding modifiers: ``.rn .rz .rm .rp``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fp4ref.ptx.run.state import Lanes

F64 = NDArray[np.float64]
WAYS = "rn|rz|rm|rp"


@dataclass(frozen=True)
class Narrow:
    """A binary format of 16 or 32 bits.

    Attributes
    ----------
    bits, fraction
        Bits in all, and of the fraction.
    nan
        Pattern of the NaN that arithmetic gives.
    """

    bits: int
    fraction: int
    nan: int
    nearest: Callable[[F64], Lanes]
    widen: Callable[[Lanes], F64]

    @property
    def storage(self) -> np.dtype[np.unsignedinteger]:
        """NumPy type of a pattern."""
        return np.dtype(f"u{self.bits // 8}")

    @property
    def sign(self) -> int:
        """Pattern of -0."""
        return 1 << self.bits - 1

    @property
    def infinity(self) -> int:
        """Pattern of the positive one."""
        return (1 << self.bits - 1) - (1 << self.fraction)

    @property
    def one(self) -> int:
        """Pattern of 1."""
        return (1 << self.bits - 2 - self.fraction) - 1 << self.fraction

    @property
    def smallest_normal(self) -> float:
        """Magnitude below which a number is subnormal."""
        exponent_bits = self.bits - 1 - self.fraction
        return float(2.0 ** (2 - (1 << exponent_bits - 1)))


def _float32(x: F64) -> Lanes:
    bits: Lanes = x.astype(np.float32).view(np.uint32)
    return bits


def _bfloat16(x: F64) -> Lanes:
    """Round by way of a float32 that is rounded to odd: it has 16 bits to spare."""
    near = x.astype(np.float32)
    bits = near.view(np.uint32)
    back = near.astype(np.float64)
    cut = bits - (np.abs(back) > np.abs(x)).astype(np.uint32)
    odd = cut | ((back != x) & np.isfinite(x)).astype(np.uint32)
    rounded = odd + np.uint32(0x7FFF) + (odd >> np.uint32(16) & np.uint32(1))
    found: Lanes = (rounded >> np.uint32(16)).astype(np.uint16)
    return found


def _widen_bfloat16(bits: Lanes) -> F64:
    wide: Lanes = bits.astype(np.uint32) << np.uint32(16)
    return wide.view(np.float32).astype(np.float64)


F32 = Narrow(
    32, 23, 0x7FFFFFFF, _float32, lambda b: b.view(np.float32).astype(np.float64)
)
F16 = Narrow(
    16,
    10,
    0x7FFF,
    lambda x: x.astype(np.float16).view(np.uint16),
    lambda b: b.view(np.float16).astype(np.float64),
)
BF16 = Narrow(16, 7, 0x7FFF, _bfloat16, _widen_bfloat16)
NARROW = {"f32": F32, "f16": F16, "bf16": BF16}


def narrow(x: F64, to: Narrow, way: str = "rn") -> Lanes:
    """Return the patterns of `x` rounded once; a NaN is canonical.

    Parameters
    ----------
    way
        ``"rn"`` to nearest even, ``"rz"`` to zero, ``"rm"`` down, ``"rp"`` up.
    """
    found = to.nearest(x)
    if way != "rn":
        back = to.widen(found)
        found = found - (np.abs(back) > np.abs(x)).astype(to.storage)
        if way != "rz":
            back = to.widen(found)
            beside = back > x if way == "rm" else back < x
            found = found + beside.astype(to.storage)
    nan = np.isnan(x)
    return np.where(nan, to.storage.type(to.nan), found) if nan.any() else found


def flush_result(x: F64, found: Lanes, to: Narrow, way: str) -> Lanes:
    """Return patterns with what is subnormal replaced by zero of its sign.

    A result counts as subnormal if it is below the smallest normal number when it is
    rounded with an unbounded exponent (measured on an H100 for float32 to nearest).
    """
    small = to.smallest_normal
    unit = small * 2.0**-to.fraction
    # The last number below the smallest normal one, and what rounds to it.
    last = small - unit / 2
    magnitude = np.abs(x)
    away = np.signbit(x) == (way == "rm")
    if way == "rn":
        below = magnitude < last + unit / 4
    elif way == "rz":
        below = magnitude < small
    else:
        below = np.where(away, magnitude <= last, magnitude < small)
    return np.where(below, found & to.storage.type(to.sign), found)


def saturate(found: Lanes, to: Narrow) -> Lanes:
    """Return patterns limited to [0, 1]; NaN gives +0."""
    kept = np.where(found > to.storage.type(to.infinity), to.storage.type(0), found)
    return np.minimum(kept, to.storage.type(to.one))
