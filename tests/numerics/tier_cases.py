"""tier_cases: operands on which each bound of the tiers is at work, or at its edge."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from fp4ref.numerics import amax_global_scale, quantize_blocks
from fp4ref.numerics.elements import ScaleFormat
from fp4ref.numerics.integer_models import BlockScaledModel

U8 = NDArray[np.uint8]
Rng = np.random.Generator
Side = tuple[U8, U8]
Cases = Mapping[str, Callable[[Rng, int, int], Side]]

HALF, SIX = 1, 7


def quantised(x: NDArray[np.float64]) -> Side:
    values = x.astype(np.float32)
    norm = float(amax_global_scale(values))
    return quantize_blocks(values, norm=norm, scale_format=ScaleFormat.UE4M3)


def normal(rng: Rng, rows: int, k: int) -> Side:
    return quantised(rng.standard_normal((rows, k)))


def positive(rng: Rng, rows: int, k: int) -> Side:
    """Sums grow beyond 24 bits on the way."""
    return quantised(np.abs(rng.standard_normal((rows, k))))


def log_normal(rng: Rng, rows: int, k: int) -> Side:
    scales = np.exp(rng.standard_normal((rows, k // 16))).repeat(16, axis=1)
    return quantised(rng.standard_normal((rows, k)) * scales)


def outliers(rng: Rng, rows: int, k: int) -> Side:
    """A few rows of much finer units among ordinary ones."""
    x = rng.standard_normal((rows, k))
    codes, scales = quantised(x)
    scales[:: max(rows // 5, 1), rng.integers(k // 16)] = 0x01
    return codes, scales


def any_scale(rng: Rng, rows: int, k: int) -> Side:
    codes = rng.integers(0, 16, (rows, k), np.uint8)
    return codes, rng.integers(0, 0x7F, (rows, k // 16), np.uint8)


def raw(rng: Rng, rows: int, k: int) -> Side:
    """NaN scales among all bytes, in one row of eight."""
    codes, scales = any_scale(rng, rows, k)
    scales[::8] = rng.integers(0, 0x100, scales[::8].shape, np.uint8)
    return codes, scales


def below_the_kept_bits(rng: Rng, rows: int, k: int) -> Side:
    """Large groups that cancel, beside terms of 2^-20: what alignment drops shows."""
    codes, scales = any_scale(rng, rows, k)
    blocks = codes.reshape(rows, -1, 4, 16)
    blocks[:, :, 0], blocks[:, :, 1] = 1, 1
    blocks[:, :, 1, ::2] = np.where(rng.random(blocks.shape[:2]) < 0.9, 9, 1)[..., None]
    blocks[:, :, 1, 1::2] = 9
    groups = scales.reshape(rows, -1, 4)
    groups[:, :, :2], groups[:, :, 2] = 0x78, 0x01
    groups[:, :, 3] = rng.integers(0, 8, groups.shape[:2])
    return codes, scales


def edge_of_24_bits(rng: Rng, rows: int, k: int) -> Side:
    """Products of 156^2 units and a few of 13^2: with K = 1024, 1.5 * 2^24 in all."""
    codes = np.where(rng.random((rows, k)) < 0.05, HALF, SIX).astype(np.uint8)
    return codes, np.full((rows, k // 16), 0x3D, np.uint8)


DISTRIBUTIONS: Cases = {
    each.__name__: each
    for each in (
        normal,
        positive,
        log_normal,
        outliers,
        any_scale,
        raw,
        below_the_kept_bits,
        edge_of_24_bits,
    )
}


def block_scaled(name: str, seed: int, m: int, n: int, k: int) -> BlockScaledModel:
    """Return a product of NVFP4 whose operands are of one distribution."""
    rng = np.random.default_rng([seed, len(name), m, n, k])
    (a, sfa), (b, sfb) = (DISTRIBUTIONS[name](rng, rows, k) for rows in (m, n))
    return BlockScaledModel(a, b, sfa, sfb, ScaleFormat.UE4M3, 16)


def of_integers(model: BlockScaledModel) -> NDArray[np.float32]:
    """Return D of the integer model."""
    rows, columns = np.arange(len(model.a)), np.arange(len(model.b))
    steps = slice(0, -(-model.a.shape[1] // 64))
    c = np.zeros((len(rows), len(columns)), np.float32)
    return model.tile(rows, columns, steps, c)
