"""double_reciprocals: ``rcp`` and ``rsqrt`` of float64, whose bits are tables.

PTX: ``.approx.ftz.f64`` ignores the lower 32 bits of the operand, and those of the
result are 0. So a NaN whose upper word is that of infinity counts as infinity. The
upper word of the result is the correctly rounded one plus a few units; the offset
depends only on the significand and, for the root, on whether the exponent is even.
Measured on an H200 (sm_90), where the tables are right for all 2^32 upper words; that
Blackwell has the same is an assumption.

``rsqrt.approx.f64`` without ``.ftz`` is that table and one step of a series, as ptxas
writes it for sm_90a and for sm_100a alike.
"""

from __future__ import annotations

import lzma
from functools import cache
from importlib import resources
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fp4ref.ptx.instructions.doubles import fma, quiet
from fp4ref.ptx.instructions.elementwise import elementwise
from fp4ref.ptx.instructions.rounding import F64
from fp4ref.ptx.run.registry import Action, Form, instruction
from fp4ref.ptx.run.state import LaunchContext
from fp4ref.ptx.text.syntax import Instruction

U32 = NDArray[np.uint32]
I64 = NDArray[np.int64]

TABLES: Final = "reciprocals_f64_sm90.npz"
"""The file of `fp4ref.data` that ``probes.doubles`` recorded."""

FRACTION: Final = 20
"""Bits of the significand in the upper word."""

ONE: Final = 1023 << FRACTION
_INF, _NAN, _SIGN = 0x7FF00000, 0x7FFFFFFF, 1 << 31


def exact(name: str, high: I64) -> I64:
    """Return upper words of the results of 1 to 4, rounded to nearest."""
    x = (high.astype(np.uint64) << np.uint64(32)).view(np.float64)
    found = 1 / x if name == "rcp" else 1 / np.sqrt(x)
    bits = found.view(np.uint64).astype(np.int64)
    return bits + (1 << 31) >> 32


def unpack(name: str, packed: NDArray[np.uint8]) -> U32:
    """Return the table that was packed."""
    offsets = np.frombuffer(lzma.decompress(packed.tobytes()), np.int8).astype(np.int64)
    first = np.arange(ONE, ONE + offsets.size, dtype=np.int64)
    return (exact(name, first) + offsets).astype(np.uint32)


@cache
def _table(name: str) -> U32:
    path = resources.files("fp4ref.data") / TABLES
    with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
        return unpack(name, file[f"table/{name}"])


def upper_words(name: str, table: U32, high: U32) -> U32:
    """Return what the table says of upper words, lower words 0.

    A subnormal counts as zero and gives Inf, as a result a subnormal is zero; a NaN is
    0x7fffffff, and so is the root of a negative number.
    """
    bits = high.astype(np.int64)
    sign, exponent = bits & _SIGN, bits >> FRACTION & 0x7FF
    steps = exponent - 1023
    if name == "rcp":
        found = table[bits & (1 << FRACTION) - 1].astype(np.int64) - (steps << FRACTION)
    else:
        place = bits - ONE & (1 << FRACTION + 1) - 1
        found = table[place].astype(np.int64) - (steps >> 1 << FRACTION)
    found = np.where(found >> FRACTION <= 0, 0, found) | sign
    if name != "rcp":
        found = np.where(sign != 0, _NAN, found)
    found = np.where(exponent == 0, sign | _INF, found)
    found = np.where(bits & ~np.int64(_SIGN) > _INF, _NAN, found)
    infinite = np.where((sign != 0) & (name != "rcp"), _NAN, sign)
    found = np.where(bits & ~np.int64(_SIGN) == _INF, infinite, found)
    return found.astype(np.uint32)


def _approximate(name: str, x: F64) -> F64:
    high = (x.view(np.uint64) >> np.uint64(32)).astype(np.uint32)
    found = upper_words(name, _table(name), high)
    return (found.astype(np.uint64) << np.uint64(32)).view(np.float64)


@instruction("rcp.approx.ftz.f64", "rsqrt.approx.ftz.f64", operands=2)
def approximate(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``rcp`` and ``rsqrt`` ``.approx.ftz.f64`` with the tables of an H200."""
    name = "rcp" if form["name"].startswith("rcp") else "rsqrt_ftz"
    return elementwise(context, each, lambda x: _approximate(name, x), "f64")


def _refined(x: F64) -> F64:
    """Return 1 / sqrt(x) of normal numbers: e = 1 - x y^2; y + y e (1/2 + 3/8 e)."""
    y = _approximate("rsqrt_ftz", x)
    e = fma(x, -(y * y), np.ones_like(x))
    return fma(fma(e, np.full_like(x, 0.375), np.full_like(x, 0.5)), y * e, y)


@instruction("rsqrt.approx.f64", operands=2)
def root(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``rsqrt.approx.f64``, which scales a subnormal up before."""

    def act(x: F64) -> F64:
        small = np.abs(x) < np.finfo(np.float64).smallest_normal
        scaled = np.where(small, x * 2.0**54, x)
        found = _refined(scaled) * np.where(small, 2.0**27, 1.0)
        found = np.where(x == np.inf, 0.0, found)
        found = np.where(x < 0, np.nan, found)
        found = np.where(x == 0, np.copysign(np.inf, x), found)
        return quiet(np.where(np.isnan(x), x, found), (x,))

    return elementwise(context, each, act, "f64")
