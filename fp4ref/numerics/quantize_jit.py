"""quantize_jit: the passes of `quantize` over a large matrix, compiled by Numba.

The definitions are the array operations of `quantize` and `formats`; here a block is
read once, and a code counts the bounds below it.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from fp4ref.numerics.compiled import njit
from fp4ref.numerics.formats import F32, U8

I32 = npt.NDArray[np.int32]

MAGNITUDE: Final = 0x7FFFFFFF
INF: Final = 0x7F800000
E2M1_NAN: Final = 7
SUBNORMAL: Final = 0x3C800000  # 2^-6, the least normal UE4M3


@njit(cache=True)
def encode_ue4m3(bits: int) -> int:
    """Return the UE4M3 code of a float32 that is not negative, by its bits."""
    if bits > INF:
        return 0x7F
    if bits < SUBNORMAL:
        x = np.int32(bits).view(np.float32) * np.float32(512)
        whole = np.float32(x + np.float32(8388608)) - np.float32(8388608)
        return int(whole)
    rounded = bits + 0x7FFFF + (bits >> 20 & 1)
    return min((rounded >> 20) - (120 << 3), 0x7E)


@njit(cache=True)
def encode_ue8m0(bits: int) -> int:
    """Return the UE8M0 code of a float32 that is not negative, rounded up."""
    if bits > INF:
        return 0xFF
    exponent = bits >> 23
    exact_at = 0x00400000 if exponent == 0 else 0
    return min(exponent + int((bits & 0x007FFFFF) > exact_at), 0xFE)


@njit(cache=True, nogil=True)
def quantize_e2m1(
    first: int,
    last: int,
    z: F32,
    target: np.float32,
    power_of_two: bool,
    factors: F32,
    bounds: I32,
    codes: U8,
    scales: U8,
) -> None:
    """Quantise the blocks from `first` to `last` to E2M1.

    Parameters
    ----------
    z, codes : (blocks, vec_size)
    target
        What the largest magnitude of a block is multiplied by.
    power_of_two
        Scales are UE8M0 and not UE4M3.
    factors : (256,)
        What the elements are multiplied by, for each scale.
    bounds : (7,)
        Largest float32 bits that round to each code but the last.
    scales : (blocks,)
    """
    for i in range(first, last):
        most = np.int32(0)
        for k in range(z.shape[1]):
            most = max(most, np.float32(z[i, k]).view(np.int32) & np.int32(MAGNITUDE))
        scaled = np.float32(np.int32(most).view(np.float32) * target)
        bits = int(scaled.view(np.int32))
        code = encode_ue8m0(bits) if power_of_two else encode_ue4m3(bits)
        scales[i] = code
        factor = factors[code]
        for k in range(z.shape[1]):
            pattern = np.float32(np.float32(z[i, k]) * factor).view(np.int32)
            size = pattern & np.int32(MAGNITUDE)
            rank = np.int32(0)
            for bound in range(7):
                rank += np.int32(size > bounds[bound])
            rank |= (pattern >> np.int32(28)) & np.int32(8)
            codes[i, k] = np.int32(E2M1_NAN) if size > INF else rank


@njit(cache=True, nogil=True)
def block_magnitudes(first: int, last: int, z: F32, largest: F32) -> tuple[int, int]:
    """Find the largest finite magnitude of blocks; returns how many NaN and Inf.

    Parameters
    ----------
    z : (blocks, vec_size)
    largest : (blocks,)
    """
    all_nans, all_infs = np.int64(0), np.int64(0)
    for i in range(first, last):
        most, nans, infs = np.int32(0), np.int32(0), np.int32(0)
        for k in range(z.shape[1]):
            size = np.float32(z[i, k]).view(np.int32) & np.int32(MAGNITUDE)
            nans += np.int32(size > INF)
            infs += np.int32(size == INF)
            most = max(most, size if size < INF else np.int32(0))
        largest[i] = np.int32(most).view(np.float32)
        all_nans += nans
        all_infs += infs
    return int(all_nans), int(all_infs)
