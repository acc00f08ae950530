"""roots: ``rsqrt.approx`` and ``sqrt.approx``, whose bits are tables of the hardware.

With ``.ftz`` each is one instruction of the hardware. Its result is the correctly
rounded one plus a few units in the last place, and the offset depends only on the
significand and on whether the exponent is even. Without ``.ftz`` ptxas scales
subnormal inputs up by 2^24 and the result back (SASS of sm_90 and sm_100a). Measured
on an H200 (sm_90), where both are right for all 2^32 inputs; that Blackwell has the
same tables is an assumption.
"""

from __future__ import annotations

import lzma
from functools import cache
from importlib import resources

import numpy as np
from numpy.typing import NDArray

from fp4ref.numerics.formats import F32
from fp4ref.ptx.instructions.elementwise import elementwise
from fp4ref.ptx.run.registry import Action, Form, instruction
from fp4ref.ptx.run.state import LaunchContext
from fp4ref.ptx.text.syntax import Instruction

TABLES = "roots_approx_sm90.npz"
"""The file of `fp4ref.data` with the offsets for x in [1, 4), one byte each."""

_NAN, _INF = np.uint32(0x7FFFFFFF), np.uint32(0x7F800000)
_ZERO, _SIGN = np.uint32(0), np.uint32(0x80000000)
_SMALLEST = np.float32(2.0**-126)


@cache
def _offsets(name: str) -> NDArray[np.int8]:
    path = resources.files("fp4ref.data") / TABLES
    with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
        packed: NDArray[np.uint8] = file[name]
    return np.frombuffer(lzma.decompress(packed.tobytes()), np.int8)


def _near(x: F32, exact: NDArray[np.float64], name: str) -> NDArray[np.uint32]:
    """Round `exact`, and add the offset of a positive normal `x`."""
    # From 1 the patterns go through two binades, with an even and an odd exponent.
    place = x.view(np.uint32).astype(np.int64) - 0x3F800000 & (1 << 24) - 1
    rounded = exact.astype(np.float32).view(np.uint32).astype(np.int64)
    near: NDArray[np.int64] = rounded + _offsets(name)[place]
    return near.astype(np.uint32)


def rsqrt_approx_ftz(x: F32) -> F32:
    """Return ``rsqrt.approx.ftz.f32`` of every element.

    A zero or subnormal gives Inf of its sign, a negative number 0x7fffffff.
    """
    bits = x.view(np.uint32)
    with np.errstate(all="ignore"):
        near = _near(x, 1 / np.sqrt(x.astype(np.float64)), "rsqrt")
    result = np.where(bits >= _SIGN, _NAN, near)
    result = np.where(bits == _INF, _ZERO, result)
    result = np.where(np.abs(x) < _SMALLEST, bits & _SIGN | _INF, result)
    return np.where(np.isnan(x), _NAN, result).astype(np.uint32).view(np.float32)


def sqrt_approx_ftz(x: F32) -> F32:
    """Return ``sqrt.approx.ftz.f32`` of every element.

    A zero or subnormal gives zero of its sign, a negative number 0x7fffffff.
    """
    bits = x.view(np.uint32)
    with np.errstate(all="ignore"):
        near = _near(x, np.sqrt(x.astype(np.float64)), "sqrt")
    result = np.where(bits >= _SIGN, _NAN, near)
    result = np.where(bits == _INF, _INF, result)
    result = np.where(np.abs(x) < _SMALLEST, bits & _SIGN, result)
    return np.where(np.isnan(x), _NAN, result).astype(np.uint32).view(np.float32)


def rsqrt_approx(x: F32) -> F32:
    """Return ``rsqrt.approx.f32``: 2^12 times the result for 2^24 times a subnormal."""
    small = np.abs(x) < _SMALLEST
    root = rsqrt_approx_ftz(np.where(small, x * np.float32(2.0**24), x))
    return np.where(small, root * np.float32(2.0**12), root)


def sqrt_approx(x: F32) -> F32:
    """Return ``sqrt.approx.f32``: 2^-12 times the result for 2^24 times a subnormal."""
    small = np.abs(x) < _SMALLEST
    root = sqrt_approx_ftz(np.where(small, x * np.float32(2.0**24), x))
    return np.where(small, root * np.float32(2.0**-12), root)


_FUNCTIONS = {
    "rsqrt.approx": rsqrt_approx,
    "rsqrt.approx.ftz": rsqrt_approx_ftz,
    "sqrt.approx": sqrt_approx,
    "sqrt.approx.ftz": sqrt_approx_ftz,
}


@instruction("rsqrt.approx", "sqrt.approx", form="(?P<ftz>.ftz)?.f32", operands=2)
def root(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``rsqrt.approx`` and ``sqrt.approx``."""
    return elementwise(context, each, _FUNCTIONS[form["name"] + form["ftz"]], "f32")
