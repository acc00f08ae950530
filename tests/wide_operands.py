"""wide_operands: operands on which a wrong accumulator shows.

Normal data with a global scale are summed exactly by every model, so they prove
nothing. These have scales over the whole range, groups that cancel, zero blocks, -0
codes and NaN scales.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from fp4ref import BlockScaled, ScaleFormat
from fp4ref.numerics import matmul_block_scaled

UE4M3, UE8M0 = ScaleFormat.UE4M3, ScaleFormat.UE8M0
U8 = NDArray[np.uint8]


def wide_pair(
    seed: int,
    m: int,
    n: int,
    k: int,
    batches: int | None = None,
    *,
    scale_format: ScaleFormat = UE4M3,
    specials: bool = True,
) -> tuple[BlockScaled, BlockScaled]:
    """Return A and B. The same K=64 slabs cancel in both.

    With `specials`, the last row of each has a NaN scale if there are three rows.
    """
    rng = np.random.default_rng([seed, m, n, k, batches or 0])
    cancelling = rng.random(k // 64) < 0.5
    lead = () if batches is None else (batches,)
    pair = []
    for rows, flip in ((m, 8), (n, 0)):
        codes = rng.integers(0, 16, (*lead, rows, k), np.uint8)
        scales = _scales(rng, (*lead, rows, k // 16), scale_format)
        _cancel(codes, scales, cancelling, flip)
        _zero_blocks(rng, codes)
        if specials and rows > 2:
            scales[..., -1, rng.integers(k // 16)] = (
                0xFF if scale_format is UE8M0 else 0x7F
            )
        pair.append((codes, scales))
    if k >= 64 and min(m, n) > 1 and scale_format is UE4M3:
        for codes, scales in pair:
            _below_the_kept_bits(codes, scales)
        pair[0][0][..., 0, 16:32] ^= 8
    a, b = (BlockScaled(c, s, scale_format=scale_format) for c, s in pair)
    return a, b


def _scales(
    rng: np.random.Generator, shape: tuple[int, ...], scale_format: ScaleFormat
) -> U8:
    """Any finite UE4M3 code; of UE8M0 mostly 2^-24 to 2^24, and now and then any."""
    if scale_format is UE4M3:
        return rng.integers(0, 0x7F, shape, np.uint8)
    scales = rng.integers(127 - 24, 127 + 25, shape, np.uint8)
    anywhere = rng.integers(0, 0xFF, shape, np.uint8)
    return np.where(rng.random(shape) < 0.01, anywhere, scales)


def _cancel(codes: U8, scales: U8, cancelling: NDArray[np.bool_], flip: int) -> None:
    """Make group 1 of a slab repeat group 0, in A with the other sign."""
    for slab in np.flatnonzero(cancelling):
        first = 64 * int(slab)
        codes[..., first + 16 : first + 32] = codes[..., first : first + 16] ^ flip
        scales[..., first // 16 + 1] = scales[..., first // 16]


def _zero_blocks(rng: np.random.Generator, codes: U8) -> None:
    """Turn one block in sixteen into +0 and -0."""
    blocks = codes.reshape(*codes.shape[:-1], -1, 16)
    dead = rng.random(blocks.shape[:-1]) < 1 / 16
    blocks[dead] &= 8


def _below_the_kept_bits(codes: U8, scales: U8) -> None:
    """Make D[0, 0] the known case 2^14 - 2^14 + 2^-20, which the MMA drops."""
    codes[..., 0, :] = 0
    codes[..., 0, [0, 16, 32]] = 1
    scales[..., 0, :4] = 0x78, 0x78, 0x01, 0


def wide_c(
    seed: int, shape: tuple[int, ...], c_format: str, *, specials: bool = True
) -> NDArray[Any]:
    """Return C over many binades, with Inf, NaN, -0 and a subnormal."""
    rng = np.random.default_rng([seed, *shape])
    values = rng.standard_normal(shape) * 2.0 ** rng.integers(-12, 13, shape)
    c = values.astype(np.float32)
    if specials and c.size > 8:
        flat = c.reshape(-1)
        at = rng.choice(c.size, 5, replace=False)
        flat[at] = np.inf, -np.inf, np.nan, -0.0, 1e-41
    dtypes: dict[str, Any] = {
        "f32": np.float32,
        "f16": np.float16,
        "bf16": ml_dtypes.bfloat16,
    }
    with np.errstate(under="ignore"):
        return c.astype(dtypes[c_format])


def wide_bias(seed: int, n: int) -> NDArray[np.float32]:
    """Return a bias over many binades."""
    rng = np.random.default_rng([seed, n])
    return (rng.standard_normal(n) * 2.0 ** rng.integers(-8, 9, n)).astype(np.float32)


def integer_product(a: BlockScaled, b: BlockScaled) -> NDArray[np.float32]:
    """Return the accumulators by the integer model itself, without tiers."""
    lead = a.codes.shape[:-2]
    d = np.empty((*lead, a.codes.shape[-2], b.codes.shape[-2]), np.float32)
    for i in np.ndindex(*lead):
        d[i] = matmul_block_scaled(
            a.codes[i],
            b.codes[i],
            a.scales[i],
            b.scales[i],
            scale_format=a.scale_format,
            vec_size=a.vec_size,
        )
    return d
