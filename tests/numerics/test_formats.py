from __future__ import annotations

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from assert_bits import assert_bits_equal, from_bits

from fp4ref.errors import InputError
from fp4ref.numerics.elements import ScaleFormat, require_scale_format
from fp4ref.numerics.formats import (
    decode_e2m1,
    decode_ue4m3,
    decode_ue8m0,
    encode_bf16,
    encode_e2m1,
    encode_f16,
    encode_ue4m3,
    encode_ue8m0,
    pack_e2m1,
    unpack_e2m1,
)

ALL_CODES = np.arange(256, dtype=np.uint8)
E2M1_CODES = ALL_CODES[:16]


def f32(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


# --- decoding -----------------------------------------------------------------


def test_every_e2m1_code_has_the_value_ml_dtypes_gives_it():
    expected = E2M1_CODES.view(ml_dtypes.float4_e2m1fn).astype(np.float32)
    assert_bits_equal(decode_e2m1(E2M1_CODES), expected)


def test_every_e4m3_code_has_the_magnitude_ml_dtypes_gives_it():
    expected = np.abs(ALL_CODES.view(ml_dtypes.float8_e4m3fn).astype(np.float32))
    expected[[0x7F, 0xFF]] = from_bits(0x7FFFFFFF)
    assert_bits_equal(decode_ue4m3(ALL_CODES), expected)


def test_every_ue8m0_code_has_the_value_ml_dtypes_gives_it():
    expected = ALL_CODES.view(ml_dtypes.float8_e8m0fnu).astype(np.float32)
    expected[0xFF] = from_bits(0x7FFFFFFF)[0]
    assert_bits_equal(decode_ue8m0(ALL_CODES), expected)


def test_ue4m3_subnormals_are_multiples_of_two_to_the_minus_nine():
    codes = np.array([0x00, 0x01, 0x03, 0x07, 0x08, 0x7E], np.uint8)
    expected = f32(0, 0.001953125, 0.005859375, 0.013671875, 0.015625, 448)
    assert_bits_equal(decode_ue4m3(codes), expected)


def test_the_largest_ue4m3_scale_is_448_and_not_61440():
    finite = decode_ue4m3(ALL_CODES[:0x7F])
    assert finite.max() == 448
    assert np.isnan(decode_ue4m3(ALL_CODES[0x7F:0x80])).all()


def test_the_sign_bit_of_a_ue4m3_scale_is_ignored():
    assert_bits_equal(decode_ue4m3(ALL_CODES[128:]), decode_ue4m3(ALL_CODES[:128]))


def test_ue8m0_code_zero_is_a_subnormal_power_of_two_and_not_zero():
    codes = np.array([0x00, 0x01, 0x7F, 0xFE, 0xFF], np.uint8)
    expected = from_bits(0x00400000, 0x00800000, 0x3F800000, 0x7F000000, 0x7FFFFFFF)
    assert_bits_equal(decode_ue8m0(codes), expected)


def test_a_scale_byte_means_different_things_in_the_two_formats():
    codes = np.array([0x38, 0x7F, 0x01], np.uint8)
    as_ue4m3 = ScaleFormat.UE4M3.decode(codes)
    as_ue8m0 = ScaleFormat.UE8M0.decode(codes)
    assert as_ue4m3[0] == 1.0
    assert as_ue8m0[0] == 2.0**-71
    assert np.isnan(as_ue4m3[1])
    assert as_ue8m0[1] == 1.0
    assert as_ue4m3[2] == 2.0**-9
    assert as_ue8m0[2] == 2.0**-126


def test_the_nan_code_of_each_scale_format_decodes_to_nan():
    for scale_format in ScaleFormat:
        code = np.array([scale_format.nan_code], np.uint8)
        assert np.isnan(scale_format.decode(code)).all()


# --- encoding -----------------------------------------------------------------


def test_every_e2m1_value_encodes_to_its_own_code():
    assert_bits_equal(encode_e2m1(decode_e2m1(E2M1_CODES)), E2M1_CODES)


def test_every_ue4m3_value_encodes_to_its_own_code():
    assert_bits_equal(encode_ue4m3(decode_ue4m3(ALL_CODES[:128])), ALL_CODES[:128])


@pytest.mark.parametrize("rounding", ["rp", "rz"])
def test_every_ue8m0_value_encodes_to_its_own_code(rounding):
    assert_bits_equal(encode_ue8m0(decode_ue8m0(ALL_CODES), rounding), ALL_CODES)


def test_e2m1_ties_go_to_the_even_code():
    ties = f32(0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0)
    expected = np.array([0, 2, 2, 4, 4, 6, 6], np.uint8)
    assert_bits_equal(encode_e2m1(ties), expected)
    assert_bits_equal(encode_e2m1(-ties), expected | 8)


def test_e2m1_saturates_and_keeps_the_sign_of_zero():
    x = f32(7.0, -100.0, -0.0, -0.1, np.inf, -np.inf)
    expected = np.array([0x7, 0xF, 0x8, 0x8, 0x7, 0xF], np.uint8)
    assert_bits_equal(encode_e2m1(x), expected)


def test_any_nan_becomes_plus_six_in_e2m1_and_0x7f_in_ue4m3():
    nans = from_bits(0x7FC00000, 0xFFC00000, 0x7F800001, 0xFF800001, 0xFFFFFFFF)
    assert_bits_equal(encode_e2m1(nans), np.full(5, 7, np.uint8))
    assert_bits_equal(encode_ue4m3(nans), np.full(5, 0x7F, np.uint8))
    assert_bits_equal(encode_ue8m0(nans), np.full(5, 0xFF, np.uint8))


def test_e4m3_ties_go_to_the_even_code_and_overflow_saturates():
    tiny = 2.0**-10
    x = f32(4.25, 1.0625, 1.1875, 448, 449, 464, 465, 1e30, np.inf)
    expected = [0x48, 0x38, 0x3A, 0x7E, 0x7E, 0x7E, 0x7E, 0x7E, 0x7E]
    assert encode_ue4m3(x).tolist() == expected
    assert encode_ue4m3(f32(tiny, tiny * 1.001, 3 * tiny)).tolist() == [0, 1, 2]


def test_e4m3_keeps_the_sign_bit_as_the_instruction_does():
    assert encode_ue4m3(f32(-500, -1, -0.0)).tolist() == [0xFE, 0xB8, 0x80]


def nearest_even(x: Fraction, grid: list[Fraction]) -> int:
    x = min(x, grid[-1])
    return min(range(len(grid)), key=lambda i: (abs(grid[i] - x), i % 2))


@pytest.mark.parametrize(
    ("encode", "decode", "count"),
    [(encode_e2m1, decode_e2m1, 8), (encode_ue4m3, decode_ue4m3, 0x7F)],
)
def test_rounding_is_right_one_pattern_to_each_side_of_every_boundary(
    encode, decode, count
):
    grid = [Fraction(float(v)) for v in decode(ALL_CODES[:count])]
    values = f32(*[float(v) for v in grid])
    centres = np.concatenate([values, (values[1:] + values[:-1]) / 2]).view(np.uint32)
    bits = np.concatenate([centres + 1, centres, np.maximum(centres, 1) - 1])
    x = bits.astype(np.uint32).view(np.float32)
    expected = [nearest_even(Fraction(float(v)), grid) for v in x]
    assert encode(x).tolist() == expected


@pytest.mark.parametrize("part", range(4))
def test_2_to_24_patterns_encode_as_ml_dtypes_does(part):
    bits = np.arange(part << 22, (part + 1) << 22, dtype=np.uint32) << 8
    x = bits.view(np.float32)
    number = x[~np.isnan(x)]
    with np.errstate(over="ignore"):
        four_bit = number.astype(ml_dtypes.float4_e2m1fn).view(np.uint8)
    assert_bits_equal(encode_e2m1(number), four_bit)
    # ml_dtypes turns overflow into NaN, the instruction saturates.
    clipped = np.clip(number, np.float32(-448), np.float32(448))
    eight_bit = clipped.astype(ml_dtypes.float8_e4m3fn).view(np.uint8)
    assert_bits_equal(encode_ue4m3(number), eight_bit)
    nans = x[np.isnan(x)]
    assert (encode_e2m1(nans) == 7).all()
    assert (encode_ue4m3(nans) == 0x7F).all()


def test_ue8m0_rounds_up_or_down_to_a_power_of_two():
    x = f32(1, np.nextafter(np.float32(1), np.float32(2)), 0.75, -3, 6.0000005)
    assert encode_ue8m0(x, "rp").tolist() == [0x7F, 0x80, 0x7F, 0x81, 0x82]
    assert encode_ue8m0(x, "rz").tolist() == [0x7F, 0x7F, 0x7E, 0x80, 0x81]


def test_ue8m0_saturates_at_both_ends():
    x = from_bits(0, 1, 0x00400000, 0x00400001, 0x00800000, 0x7F000000, 0x7F000001)
    x = np.concatenate([x, from_bits(0x7F7FFFFF, 0x7F800000, 0xFF800000)])
    up = [0, 0, 0, 1, 1, 0xFE, 0xFE, 0xFE, 0xFE, 0xFE]
    down = [0, 0, 0, 0, 1, 0xFE, 0xFE, 0xFE, 0xFE, 0xFE]
    assert encode_ue8m0(x, "rp").tolist() == up
    assert encode_ue8m0(x, "rz").tolist() == down


def test_ue8m0_up_is_the_smallest_power_of_two_that_is_not_smaller():
    rng = np.random.default_rng(1)
    x = rng.integers(0, 0x7F000001, 20_000, dtype=np.uint32).view(np.float32)
    up = decode_ue8m0(encode_ue8m0(x, "rp")).astype(np.float64)
    down = decode_ue8m0(encode_ue8m0(x, "rz")).astype(np.float64)
    assert (up >= x).all()
    assert ((up < 2 * x.astype(np.float64)) | (up == 2.0**-127)).all()
    assert ((down <= x) & (x < 2 * down) | (x < 2.0**-127)).all()


# --- packing ------------------------------------------------------------------


def test_element_zero_sits_in_the_low_nibble():
    packed = pack_e2m1(encode_e2m1(f32(1.0, -6.0, 0.5, 3.0)))
    assert packed.tolist() == [0xF2, 0x51]


def test_unpacking_then_packing_gives_all_256_bytes_back():
    assert_bits_equal(pack_e2m1(unpack_e2m1(ALL_CODES)), ALL_CODES)


def test_packing_halves_only_the_last_dimension():
    codes = np.arange(2 * 3 * 8, dtype=np.uint8).reshape(2, 3, 8) % 16
    packed = pack_e2m1(codes)
    assert packed.shape == (2, 3, 4)
    assert_bits_equal(unpack_e2m1(packed), codes)


def test_an_odd_number_of_codes_cannot_be_packed():
    with pytest.raises(InputError, match=r"shape \(2, 3\).*must be even"):
        pack_e2m1(np.zeros((2, 3), np.uint8))


def test_a_byte_with_two_codes_is_not_one_code():
    with pytest.raises(InputError, match=r"code 0xF2.*unpack_e2m1"):
        pack_e2m1(np.array([0xF2, 0x51], np.uint8))
    with pytest.raises(InputError, match="code 0x10"):
        decode_e2m1(np.array([0x10], np.uint8))


# --- the casts of the epilogue ------------------------------------------------


@pytest.mark.parametrize(
    ("encode", "dtype"), [(encode_bf16, ml_dtypes.bfloat16), (encode_f16, np.float16)]
)
def test_16_bit_casts_round_like_the_library_type_and_make_one_nan(encode, dtype):
    rng = np.random.default_rng(2)
    x = rng.integers(0, 1 << 32, 1 << 20, dtype=np.uint32).view(np.float32)
    ties = (np.arange(1 << 16, dtype=np.uint32) << 16 | 0x8000).view(np.float32)
    half_ties = np.arange(0x33000000, 0x47900000, 0x1000 // 4, dtype=np.uint32)
    x = np.concatenate([x, ties, half_ties.view(np.float32)])
    with np.errstate(all="ignore"):
        expected = x.astype(dtype).view(np.uint16)
    expected = np.where(np.isnan(x), np.uint16(0x7FFF), expected)
    assert_bits_equal(encode(x), expected)


def test_16_bit_casts_overflow_to_infinity():
    big = f32(3.4028235e38, -3.4028235e38)
    assert encode_bf16(big).tolist() == [0x7F80, 0xFF80]
    assert encode_f16(big).tolist() == [0x7C00, 0xFC00]
    assert encode_f16(f32(65519.996, 65520.0)).tolist() == [0x7BFF, 0x7C00]


# --- bad input ----------------------------------------------------------------


@pytest.mark.parametrize(
    "encode", [encode_e2m1, encode_ue4m3, encode_ue8m0, encode_bf16, encode_f16]
)
def test_float64_is_refused_because_it_would_round_twice(encode):
    with pytest.raises(InputError, match=r"dtype float64; need float32.*astype"):
        encode(np.array([1.0]))


@pytest.mark.parametrize("decode", [decode_e2m1, decode_ue4m3, decode_ue8m0])
def test_values_are_refused_where_codes_are_wanted(decode):
    with pytest.raises(InputError, match="codes are uint8"):
        decode(np.array([1.0], np.float32))


def test_an_unknown_rounding_is_refused():
    with pytest.raises(InputError, match=r"rounding: 'rn'.*'rp'"):
        encode_ue8m0(f32(1), "rn")


def test_a_scale_without_a_declared_format_is_refused():
    with pytest.raises(InputError, match="does not say what it means"):
        require_scale_format(np.uint8, "mma")


def test_scalars_and_strided_arrays_encode_like_flat_ones():
    assert encode_e2m1(np.float32(3)) == 5
    strided = np.arange(12, dtype=np.float32).reshape(3, 4)[:, ::2]
    assert_bits_equal(encode_e2m1(strided), encode_e2m1(strided.copy()))
