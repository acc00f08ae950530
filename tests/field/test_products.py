"""The MMA and the epilogue's block scales as others report them: B35 to B37."""

from __future__ import annotations

import numpy as np
import pytest

import fp4ref
from fp4ref.errors import ConfigError, Fp4refError
from fp4ref.gemm.config import GemmConfig
from fp4ref.hardware.instr_descriptor import InstrDescriptor
from fp4ref.numerics import (
    ScaleFormat,
    dequantize_blocks,
    mma_block_scaled,
    quantize_blocks,
)

UE4M3 = ScaleFormat.UE4M3
C = 2.0**24


def mma(groups: list[tuple[int, int, int]], c: float = 0.0) -> np.float32:
    """One product in each group of 16: codes of A and B, scale byte of both."""
    a, b = np.zeros((2, 1, 64), np.uint8)
    scales = np.zeros((1, 4), np.uint8)
    for group, (of_a, of_b, scale) in enumerate(groups):
        a[0, 16 * group], b[0, 16 * group] = of_a, of_b
        scales[0, group] = scale
    d = mma_block_scaled(
        *(a, b, scales, scales, np.full((1, 1), c, np.float32)),
        scale_format=UE4M3,
        vec_size=16,
    )
    return d[0, 0]


def test_b36_the_sum_is_truncated() -> None:
    """2^24 + 3: exact rounding to nearest would give 16777220."""
    assert mma([(5, 2, 0x38)], C) == 16777218
    assert np.float32(np.float64(C) + 3) == 16777220


def test_b36_ones_are_lost_one_by_one() -> None:
    total = np.float32(C)
    for _ in range(4):
        total = mma([(2, 2, 0x38)], float(total))
    assert total == C


@pytest.mark.parametrize(("small", "want"), [(0x01, 0.0), (0x08, 2.0**-14)])
def test_b36_what_cancels_still_aligns(small: int, want: float) -> None:
    """+16384 - 16384 + 0.25 * small^2: bits 36 below the largest scale are gone."""
    assert mma([(1, 1, 0x78), (1, 9, 0x78), (1, 1, small)]) == np.float32(want)


def test_b36_a_nan_scale_or_c_gives_the_one_nan() -> None:
    for found in (mma([(0, 0, 0x7F)]), mma([(2, 2, 0x38)], np.nan)):
        assert found.view(np.uint32) == 0x7FFFFFFF


def test_b35_nvfp4_is_k_major_with_these_tiles() -> None:
    right = 1 << 7 | 1 << 10 | 128 >> 3 << 17 | 1 << 27
    InstrDescriptor.decode(right)
    for transposed in (15, 16):
        with pytest.raises(Fp4refError, match=r"K-major|major|transpose"):
            InstrDescriptor.decode(right | 1 << transposed)
    with pytest.raises(ConfigError):
        fp4ref.plan(GemmConfig.nvfp4(tile_m=64))


def test_b37_each_group_has_its_own_constant() -> None:
    """The largest is 12; constants 1 and 2 give scales 2 and 4 and the same codes."""
    z = np.zeros((2, 16), np.float32)
    z[:, :2] = 12, 3
    found = [
        quantize_blocks(z[i], norm=c, scale_format=UE4M3) for i, c in enumerate((1, 2))
    ]
    assert [s.tolist() for _, s in found] == [[0x40], [0x48]]
    assert [c[:2].tolist() for c, _ in found] == [[7, 3], [7, 3]]
    for (codes, scales), c in zip(found, (1, 2), strict=True):
        values = dequantize_blocks(codes, scales, scale_format=UE4M3) / c
        assert values[:2].tolist() == [12, 3]
    # Group 1 made with group 0's constant and read with its own is off by a half.
    codes, scales = found[0]
    assert dequantize_blocks(codes, scales, scale_format=UE4M3)[0] / 2 == 6
