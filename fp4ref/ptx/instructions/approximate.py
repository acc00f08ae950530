"""approximate: instructions whose bits are a table of the hardware.

Both were measured on an H200 (sm_90) and are right for all 2^32 inputs there; that
Blackwell has the same tables is an assumption. The third is `numerics.reciprocal`.

- ``ex2.approx.ftz.f32`` turns x into fixed point with 23 fraction bits, dropping the
  rest; a negative x that is no integer gets the ones' complement of its fraction. The
  significand of the result depends on the fraction alone.
- ``tanh.approx.f32`` is x below 2^-8 and 1 from 8 on. Between, it drops low bits of x,
  so that in each binade runs of 2^r patterns give one result. It is odd.
"""

from __future__ import annotations

import lzma
from functools import cache
from importlib import resources

import numpy as np
from numpy.typing import NDArray

F32 = NDArray[np.float32]
I64 = NDArray[np.int64]


TABLES = "ex2_tanh_approx_sm90.npz"
"""The file of `fp4ref.data` with the results of ex2 and tanh, as steps."""


def _steps(name: str) -> bytes:
    """Return the packed steps of a table."""
    path = resources.files("fp4ref.data") / TABLES
    with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
        table: NDArray[np.uint8] = file[name]
    return table.tobytes()


_FRACTION = (1 << 23) - 1


@cache
def _ex2_table() -> I64:
    """Bits of 2^x for x in [1, 2), by fraction."""
    packed = _steps("ex2_steps")
    steps = np.frombuffer(lzma.decompress(packed), np.uint8)
    start = np.array([0x40000000], np.int64)
    return np.concatenate([start, start + np.cumsum(steps, dtype=np.int64)])


def ex2_approx_ftz(x: F32) -> F32:
    """Return ``ex2.approx.ftz.f32`` of every element."""
    bits = x.view(np.uint32).astype(np.int64)
    negative, exponent = bits >> 31 == 1, (bits >> 23 & 0xFF) - 127
    significand = np.where(exponent > -127, bits & _FRACTION | 1 << 23, 0)
    fixed = np.where(
        exponent >= 0,
        significand << np.clip(exponent, 0, 9),
        significand >> np.clip(-exponent, 0, 40),
    )
    fraction, whole = fixed & _FRACTION, fixed >> 23
    between = negative & (fraction != 0)
    fraction = np.where(between, _FRACTION - fraction, fraction)
    whole = np.where(negative, -whole - between, whole)
    result = _ex2_table()[fraction] + ((whole - 1) << 23)
    result = np.where(result >> 23 <= 0, 0, result)
    overflows = (result >> 23 >= 255) | (exponent > 8)
    result = np.where(overflows, np.where(negative, 0, 0x7F800000), result)
    is_nan = (exponent == 128) & (bits & _FRACTION != 0)
    return np.where(is_nan, 0x7FFFFFFF, result).astype(np.uint32).view(np.float32)


TANH_RUNS = (6, 6, 6, 5, 5, 4, 4, 4, 3, 2, 3)
"""log2 of the length of a run, by binade from 2^-8 to 4."""

TANH_FIRST = 0x3B800000
"""Bits of 2^-8."""

_ONE, _NAN = np.uint32(0x3F800000), np.uint32(0x7FFFFFFF)


@cache
def _tanh_table() -> NDArray[np.uint32]:
    """Results of all runs, one binade after the other."""
    packed = _steps("tanh_steps")
    planes = np.frombuffer(lzma.decompress(packed), np.uint8).reshape(4, -1)
    steps = np.ascontiguousarray(planes.T).view("<i4").ravel()
    return np.cumsum(steps, dtype=np.int32).view(np.uint32)


def tanh_approx(x: F32) -> F32:
    """Return ``tanh.approx.f32`` of every element."""
    bits = x.view(np.uint32)
    sign, magnitude = bits & np.uint32(1 << 31), bits & np.uint32(0x7FFFFFFF)
    lengths = np.array(TANH_RUNS, np.int64)
    sizes = np.int64(1 << 23) >> lengths
    starts = np.cumsum(sizes) - sizes
    offset = magnitude.astype(np.int64) - TANH_FIRST
    inside = (offset >= 0) & (offset < len(TANH_RUNS) << 23)
    binade = np.where(inside, offset >> 23, 0)
    place = np.where(inside, offset & 0x7FFFFF, 0) >> lengths[binade]
    result = np.where(offset < 0, magnitude, _ONE)
    result = np.where(inside, _tanh_table()[starts[binade] + place], result) | sign
    is_nan = magnitude > np.uint32(0x7F800000)
    return np.where(is_nan, _NAN, result).astype(np.uint32).view(np.float32)
