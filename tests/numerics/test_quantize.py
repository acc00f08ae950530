from __future__ import annotations

import math

import numpy as np
import pytest
from assert_bits import assert_bits_equal

from fp4ref.errors import InputError
from fp4ref.numerics.elements import ScaleFormat
from fp4ref.numerics.formats import decode_ue4m3
from fp4ref.numerics.quantize import (
    amax_global_scale,
    dequantize_blocks,
    quantize_blocks,
)

UE4M3, UE8M0 = ScaleFormat.UE4M3, ScaleFormat.UE8M0
GRID = [0, 0.5, 1, 1.5, 2, 3, 4, 6]


def block(*values: float, size: int = 16) -> np.ndarray:
    z = np.zeros(size, np.float32)
    z[: len(values)] = values
    return z


def quantize(z, norm=1.0, scale_format=UE4M3, vec_size=16):
    return quantize_blocks(z, norm=norm, scale_format=scale_format, vec_size=vec_size)


def dequantize(codes, scales, scale_format=UE4M3):
    return dequantize_blocks(codes, scales, scale_format=scale_format)


# --- an independent scalar version of the rule --------------------------------


def scalar_e2m1(x: float) -> int:
    if math.isnan(x):
        return 7
    sign = 8 if math.copysign(1, x) < 0 else 0
    magnitude = min(abs(x), 6)
    nearest = min(range(8), key=lambda i: (abs(GRID[i] - magnitude), i % 2))
    return sign | nearest


def scalar_e4m3(x: float, values: list[float]) -> int:
    x = min(x, 448.0)
    return min(range(127), key=lambda i: (abs(values[i] - x), i % 2))


def scalar_rule(z: np.ndarray, norm: float) -> tuple[list[int], int]:
    """Quantise one block with np.float32 scalars, in the order CUTLASS does."""
    f32 = np.float32
    values = [float(v) for v in decode_ue4m3(np.arange(127, dtype=np.uint8))]
    amax = f32(max(abs(float(v)) for v in z))
    scale = scalar_e4m3(float(amax * (f32(norm) * f32(1 / 6))), values)
    flt_max = np.finfo(f32).max
    factor = (
        flt_max
        if scale == 0
        else min(f32(norm) * (f32(1) / f32(values[scale])), flt_max)
    )
    with np.errstate(over="ignore"):
        return [scalar_e2m1(float(v * factor)) for v in z], scale


@pytest.mark.parametrize("norm", [1.0, 2.0, 0.3, 97.3])
def test_vector_and_scalar_versions_of_the_rule_agree(norm):
    rng = np.random.default_rng(3)
    spread = rng.integers(-12, 12, (60, 1)).astype(np.float32)
    z = (rng.standard_normal((60, 16)) * np.exp2(spread)).astype(np.float32)
    z[::3] = rng.integers(-36, 37, (20, 16)) * np.float32(0.25)  # many ties
    codes, scales = quantize(z, norm)
    for row in range(len(z)):
        expected_codes, expected_scale = scalar_rule(z[row], norm)
        assert scales[row].tolist() == [expected_scale]
        assert codes[row].tolist() == expected_codes


# --- named cases --------------------------------------------------------------


def test_a_zero_block_next_to_a_small_one_has_scale_zero_and_no_nan():
    z = np.concatenate([np.full(16, 0.01), np.zeros(16)]).astype(np.float32)
    z[20] = -0.0
    codes, scales = quantize(z, amax_global_scale(z))
    assert scales.tolist() == [0x7E, 0x00]
    assert codes[16:].tolist() == [0, 0, 0, 0, 8] + [0] * 11
    assert (dequantize(codes, scales)[16:] == 0).all()


def test_a_scale_that_underflows_saturates_the_codes_and_decodes_to_zero():
    z = np.full(16, 0.005, np.float32)
    z[3], z[5] = -0.005, 0.0
    codes, scales = quantize(z)
    assert scales.tolist() == [0]
    assert codes.tolist() == [7, 7, 7, 15, 7, 0] + [7] * 10
    assert (dequantize(codes, scales) == 0).all()


def test_the_smallest_block_that_keeps_a_scale_is_just_above_six_over_1024():
    assert quantize(block(6 * 2.0**-10))[1].tolist() == [0]
    assert quantize(block(0.00586))[1].tolist() == [1]


def test_a_zero_tensor_has_a_finite_global_scale_and_decodes_to_zero():
    z = np.zeros((4, 64), np.float32)
    norm = amax_global_scale(z)
    codes, scales = quantize(z, norm)
    assert norm == 1.0
    assert not scales.any()
    assert_bits_equal(dequantize(codes, scales), z)


@pytest.mark.parametrize("position", range(16))
@pytest.mark.parametrize("pattern", [0x7FC00000, 0xFFC00000, 0x7F800001])
def test_one_nan_makes_the_scale_nan_and_every_code_seven(position, pattern):
    z = block(*[3.0] * 16)
    z.view(np.uint32)[position] = pattern
    for scale_format, nan in ((UE4M3, 0x7F), (UE8M0, 0xFF)):
        codes, scales = quantize(z, scale_format=scale_format)
        assert scales.tolist() == [nan]
        assert codes.tolist() == [7] * 16
        assert np.isnan(dequantize(codes, scales, scale_format)).all()


@pytest.mark.parametrize("position", range(16))
def test_one_infinity_takes_the_largest_finite_scale(position):
    z = block(*[3.0] * 16)
    z[position] = np.inf
    codes, scales = quantize(z)
    assert scales.tolist() == [0x7E]
    expected = [0] * 16
    expected[position] = 7
    assert codes.tolist() == expected
    assert dequantize(codes, scales)[position] == 2688
    codes, scales = quantize(-z, scale_format=UE8M0)
    assert scales.tolist() == [0xFE]
    assert codes.tolist() == [15 if c == 7 else 8 for c in expected]


def test_the_rule_multiplies_by_a_reciprocal_and_does_not_divide():
    # scale 1.875; 4.6875 / 1.875 is the tie 2.5, times the reciprocal it is above.
    codes, scales = quantize(block(11.25, 4.6875, 2.34375, 9.375))
    assert scales.tolist() == [0x3F]
    assert codes[:4].tolist() == [7, 5, 3, 7]


@pytest.mark.parametrize(
    ("amax", "scale", "code"),
    [
        (1.0, 0x7D, 6),
        (5.0, 0x7F, 6),
        (6.0, 0x7F, 7),
        (6.5, 0x80, 5),
        (7.0, 0x80, 6),
        (8.0, 0x80, 6),
        (12.5, 0x81, 5),
    ],
)
def test_ue8m0_scales_round_up(amax, scale, code):
    z = block(amax, size=32)
    codes, scales = quantize(z, scale_format=UE8M0, vec_size=32)
    assert scales.tolist() == [scale]
    assert codes[0] == code


def test_ue8m0_rounding_up_sees_the_last_bit_of_the_maximum():
    assert quantize(block(6.0), 2.0, UE8M0)[1].tolist() == [128]
    assert quantize(block(6.0000005), 2.0, UE8M0)[1].tolist() == [129]


def test_one_sixth_is_multiplied_into_the_norm_before_the_maximum():
    # 7.5 * 5 / 6 = 6.25 is a tie; (7.5 * 5) * (1/6) gives it, 7.5 * (5 * (1/6)) not.
    assert quantize(block(7.5), 5.0)[1].tolist() == [0x4D]
    assert quantize(block(4.5), 7.0)[1].tolist() == [0x4B]
    assert quantize(block(19.2), 5.0, UE8M0)[1].tolist() == [0x84]


def test_a_ue8m0_zero_block_has_code_zero_and_decodes_to_zero():
    codes, scales = quantize(block(0.0, -0.0, size=32), 1.0, UE8M0, 32)
    assert scales.tolist() == [0]
    assert codes[:2].tolist() == [0, 8]
    assert (dequantize(codes, scales, UE8M0) == 0).all()


def test_without_a_global_scale_values_above_2688_are_clipped():
    z = np.full(16, 3000, np.float32)
    codes, scales = quantize(z)
    assert (scales[0], codes[0]) == (0x7E, 7)
    assert dequantize(codes, scales)[0] == 2688
    norm = amax_global_scale(z)
    codes, scales = quantize(z, norm)
    assert (scales[0], codes[0]) == (0x7E, 7)
    assert abs(dequantize(codes, scales)[0] / norm - 3000) <= np.spacing(
        np.float32(3000)
    )


def test_the_global_scale_is_the_factor_to_multiply_by():
    z = block(0.75, 0.1)
    norm = amax_global_scale(z)
    assert norm == 3584
    codes, scales = quantize(z, norm)
    assert (scales[0], codes[0]) == (0x7E, 7)
    assert dequantize(codes, scales)[0] / norm == 0.75


def test_the_global_maximum_is_of_magnitudes():
    z = np.full(16, -2.0, np.float32)
    z[7] = 0.001
    norm = amax_global_scale(z)
    assert norm == 1344
    codes, scales = quantize(z, norm)
    assert codes[0] == 0xF
    assert dequantize(codes, scales)[0] / norm == -2.0


def test_the_global_scale_is_one_for_infinity_and_ignores_nan():
    assert amax_global_scale(block(np.inf, 1.0)) == 1.0
    assert amax_global_scale(block(-np.inf)) == 1.0
    assert amax_global_scale(block(np.nan, -2.0)) == 1344
    assert amax_global_scale(block(np.nan)) == 1.0
    assert amax_global_scale(np.float32(np.nan)) == 1.0
    assert amax_global_scale(np.zeros((0, 16), np.float32)) == 1.0
    assert amax_global_scale(block(1e-45)) == np.finfo(np.float32).max


def test_the_norm_constant_scales_the_scale_and_not_the_codes():
    z = block(12.0, 3.0)
    codes_1, scales_1 = quantize(z, 1.0)
    codes_2, scales_2 = quantize(z, 2.0)
    assert (scales_1[0], scales_2[0]) == (0x40, 0x48)
    assert codes_1[:2].tolist() == codes_2[:2].tolist() == [7, 3]


def test_ue8m0_dequantises_exactly_in_float64_only():
    codes = np.full(16, 7, np.uint8)
    top = np.array([0xFE], np.uint8)
    narrow = dequantize_blocks(codes, top, scale_format=UE8M0)
    wide = dequantize_blocks(codes, top, scale_format=UE8M0, dtype="float64")
    assert np.isinf(narrow).all()
    assert (wide == 6 * 2.0**127).all()


def test_leading_dimensions_are_kept():
    z = np.random.default_rng(4).standard_normal((2, 3, 64)).astype(np.float32)
    codes, scales = quantize(z)
    assert codes.shape == (2, 3, 64)
    assert scales.shape == (2, 3, 4)
    one_codes, one_scales = quantize(z[1, 2])
    assert_bits_equal(codes[1, 2], one_codes)
    assert_bits_equal(scales[1, 2], one_scales)


# --- bad input ----------------------------------------------------------------


def test_a_row_that_is_not_whole_blocks_is_refused():
    with pytest.raises(InputError, match=r"\(2, 24\).*multiple of vec_size 16.*Pad"):
        quantize(np.zeros((2, 24), np.float32))


@pytest.mark.parametrize("norm", [0.0, -1.0, math.nan, math.inf, 1e39, 1e-46])
def test_a_norm_that_is_not_positive_and_finite_in_float32_is_refused(norm):
    with pytest.raises(InputError, match=r"norm: .*; need a positive number"):
        quantize(block(1.0), norm)


def test_other_bad_arguments_are_refused_by_name():
    with pytest.raises(InputError, match="vec_size: 8"):
        quantize(block(1.0), vec_size=8)
    with pytest.raises(InputError, match="scale_format 'ue4m3'"):
        quantize(block(1.0), scale_format="ue4m3")
    with pytest.raises(InputError, match="z: dtype float64"):
        quantize(np.zeros(16))
    codes = np.zeros((2, 32), np.uint8)
    with pytest.raises(InputError, match="tiled layout"):
        dequantize(codes, np.zeros(512, np.uint8))
    with pytest.raises(InputError, match="dtype: 'float16'"):
        dequantize_blocks(codes, codes[:, :2], scale_format=UE4M3, dtype="float16")
