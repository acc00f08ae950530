"""reciprocal: ``rcp.approx.ftz.f32``, whose bits are a table of the hardware.

It is the correctly rounded reciprocal plus -1, 0 or 1 unit in the last place, and the
offset depends only on the significand: measured on an H200 (sm_90), where the table is
right for all 2^32 inputs. That Blackwell has the same table is an assumption.
"""

from __future__ import annotations

import gzip
from functools import cache
from importlib import resources

import numpy as np
from numpy.typing import NDArray

from fp4ref.numerics.formats import F32


@cache
def _rcp_offsets() -> NDArray[np.int8]:
    packed = (
        resources.files("fp4ref.data") / "rcp_approx_sm90_delta.bin.gz"
    ).read_bytes()
    return np.frombuffer(gzip.decompress(packed), np.int8)


def rcp_approx_ftz(x: F32) -> F32:
    """Return ``rcp.approx.ftz.f32`` of every element.

    Subnormal inputs count as zero and give Inf; results below 2^-126 are zero; NaN is
    0x7fffffff.
    """
    bits = x.view(np.uint32)
    sign = bits & np.uint32(0x80000000)
    exponent = bits >> np.uint32(23) & np.uint32(0xFF)
    with np.errstate(all="ignore"):
        exact = (np.float32(1) / x).view(np.uint32)
    offset = _rcp_offsets()[bits & np.uint32(0x7FFFFF)].astype(np.int64)
    near = (exact.astype(np.int64) + offset).astype(np.uint32)
    small = (near >> np.uint32(23) & np.uint32(0xFF)) == 0
    result = np.where(small, sign, near)
    result = np.where(exponent == 0, sign | np.uint32(0x7F800000), result)
    result = np.where(exponent == 255, sign, result)
    result = np.where(np.isnan(x), np.uint32(0x7FFFFFFF), result)
    return result.astype(np.uint32).view(np.float32)
