"""MXFP8 and MXFP6: what a block decodes to, and how its codes lie."""

from __future__ import annotations

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

import fp4ref
from fp4ref import BlockScaled, ScaleFormat
from fp4ref.errors import InputError
from fp4ref.tensors.losses import UnderflowWarning

LARGEST = {
    "mxfp8_e4m3": (448, 8),
    "mxfp8_e5m2": (57344, 8),
    "mxfp6_e2m3": (7.5, 6),
    "mxfp6_e3m2": (28, 6),
}
"""Largest element, and its bits. Source: OCP Microscaling formats, section 5."""
DTYPES = {
    "mxfp8_e4m3": ml_dtypes.float8_e4m3fn,
    "mxfp8_e5m2": ml_dtypes.float8_e5m2,
    "mxfp6_e2m3": ml_dtypes.float6_e2m3fn,
    "mxfp6_e3m2": ml_dtypes.float6_e3m2fn,
}


@pytest.mark.parametrize("format", LARGEST)
def test_the_scale_is_the_power_of_two_above_amax_over_the_largest(format: str) -> None:
    largest, bits = LARGEST[format]
    rng = np.random.default_rng(1)
    x = (rng.standard_normal((8, 96)) * 2.0 ** rng.integers(-9, 9, (8, 1))).astype("f4")
    q = fp4ref.quantize(x, format)
    assert q.scale_format is ScaleFormat.UE8M0
    assert q.packed().shape == (8, 96 * bits // 8)
    for block, scale in zip(x.reshape(-1, 32), q.scales.ravel().tolist(), strict=True):
        amax = Fraction(float(np.abs(block).max()))
        target = amax / Fraction(largest)
        assert Fraction(2) ** (scale - 128) < target <= Fraction(2) ** (scale - 127)
    scales = np.repeat(2.0 ** (q.scales.astype(int) - 127), 32, axis=-1)
    wanted = (x / scales).astype(np.float32).astype(DTYPES[format]).view(np.uint8)
    assert np.array_equal(q.codes, wanted)
    decoded = wanted.view(DTYPES[format]).astype(np.float64) * scales
    assert np.array_equal(q.dequantize(np.float64), decoded)


@pytest.mark.parametrize("format", LARGEST)
def test_packed_codes_come_back(format: str) -> None:
    rng = np.random.default_rng(2)
    codes = rng.integers(0, 1 << LARGEST[format][1], (3, 64), np.uint8)
    q = BlockScaled(codes, np.full((3, 2), 127, np.uint8), format)
    again = BlockScaled.from_packed(q.packed(), q.scales, format=format)
    assert np.array_equal(again.codes, codes)


def test_four_codes_of_six_bits_are_three_bytes_lowest_first() -> None:
    codes = np.zeros((1, 32), np.uint8)
    codes[0, :4] = 0x3F, 0, 0x01, 0x20
    q = BlockScaled(codes, np.full((1, 1), 127, np.uint8), "mxfp6_e3m2")
    assert q.packed()[0, :3].tolist() == [0x3F, 0x10, 0x80]


def test_a_nan_makes_its_block_nan() -> None:
    x = np.ones((1, 64), np.float32)
    x[0, 3] = np.nan
    with pytest.warns(Warning, match="1 NaN and 0 Inf; E4M3 takes no Inf"):
        q = fp4ref.quantize(x, "mxfp8_e4m3")
    assert np.isnan(q.dequantize()[0]).tolist() == [True] * 32 + [False] * 32


def test_a_block_below_half_of_the_smallest_number_is_lost() -> None:
    tiny = np.full((1, 32), 2.0**-131, np.float32)  # 2^-127 * 2^-3 / 2 for E2M3
    with pytest.warns(UnderflowWarning, match="1 of 1 blocks decode to zero"):
        assert not fp4ref.quantize(tiny, "mxfp6_e2m3").codes.any()
    assert fp4ref.quantize(tiny * 2, "mxfp6_e2m3").codes.any()


def test_a_code_has_the_bits_of_its_format() -> None:
    with pytest.raises(InputError, match=r"code 0x40; need .* at most 0x3F"):
        BlockScaled(np.full((1, 32), 64, "u1"), np.zeros((1, 1), "u1"), "mxfp6_e2m3")
    with pytest.raises(InputError, match=r"3 \* K / 4\), four codes in three"):
        BlockScaled.from_packed(
            np.zeros((1, 25), "u1"), np.zeros((1, 1), "u1"), format="mxfp6_e2m3"
        )
