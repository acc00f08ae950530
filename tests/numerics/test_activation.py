from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from assert_bits import assert_bits_equal, from_bits
from exact_dot import float32_bits

from fp4ref.errors import InputError
from fp4ref.numerics.activation import gelu, relu, silu

# (x, gelu(x), silu(x)) as float32 bits. A change here is a change of the definition:
# the CUDA kernel has to change with it.
GOLDEN = [
    (0x00000000, 0x00000000, 0x00000000),
    (0x80000000, 0x80000000, 0x80000000),
    (0x00000001, 0x00000000, 0x00000000),
    (0x80000001, 0x80000000, 0x80000000),
    (0x006CE3EE, 0x003671F7, 0x003671F7),
    (0x806CE3EE, 0x803671F7, 0x803671F7),
    (0x38D1B717, 0x3851BB5F, 0x3851B9C6),
    (0xB8D1B717, 0xB851B2CD, 0xB851B467),
    (0x3DCCCCCD, 0x3D5D1D05, 0x3D57080F),
    (0xBDCCCCCD, 0xBD3C7C96, 0xBD42918B),
    (0x3F000000, 0x3EB1016D, 0x3E9F597F),
    (0xBF000000, 0xBE1DFD25, 0xBE414D03),
    (0x3F40756A, 0x3F14EDA1, 0x3F02C9F7),
    (0xBF40756A, 0xBE2E1F22, 0xBE76ADCD),
    (0x3F800000, 0x3F57585C, 0x3F3B26A8),
    (0xBF800000, 0xBE229E90, 0xBE89B2B1),
    (0x3FC00000, 0x3FB32529, 0x3F9CF96B),
    (0xBFC00000, 0xBDCDAD6B, 0xBE8C1A51),
    (0x40000000, 0x3FFA3043, 0x3FE17BEA),
    (0xC0000000, 0xBD39F7C5, 0xBE7420A9),
    (0x402DF854, 0x402D6DF2, 0x40233363),
    (0xC02DF854, 0xBC0A6117, 0xBE2C4F0A),
    (0x40400000, 0x403FC468, 0x4036E4ED),
    (0xC0400000, 0xBB6E6153, 0xBE11B139),
    (0x40800000, 0x407FFEDA, 0x407B6541),
    (0xC0800000, 0xB89350FC, 0xBD9357D1),
    (0x40B00000, 0x40B00000, 0x40AF489E),
    (0xC0B00000, 0xB1CBAC10, 0xBCB76256),
    (0x41000000, 0x41000000, 0x40FFEA06),
    (0xC1000000, 0x9D6AD134, 0xBB2FD1EF),
    (0x41200000, 0x41200000, 0x411FFE24),
    (0xC1200000, 0x8223E47D, 0xB9EE03FC),
    (0x41440000, 0x41440000, 0x4143FFC3),
    (0xC1440000, 0x80000000, 0xB875DBF7),
    (0xC17E6666, 0x80000000, 0xB604B513),
    (0xC1800000, 0x80000000, 0xB5F1AADB),
    (0xC1880000, 0x80000000, 0xB53CEC0B),
    (0x41880000, 0x41880000, 0x41880000),
    (0x41F00000, 0x41F00000, 0x41F00000),
    (0xC1F00000, 0x80000000, 0xAC458B96),
    (0xC2700000, 0x80000000, 0x972299BC),
    (0x42700000, 0x42700000, 0x42700000),
    (0xC2AE0000, 0x80000000, 0x83F39E1F),
    (0xC2B00000, 0x80000000, 0x83354DDC),
    (0xC2B0CCCD, 0x80000000, 0x80000000),
    (0xC2B20000, 0x80000000, 0x80000000),
    (0xC2C80000, 0x80000000, 0x80000000),
    (0xC2FFCCCD, 0x80000000, 0x80000000),
    (0xC3010000, 0x80000000, 0x80000000),
    (0x42C80000, 0x42C80000, 0x42C80000),
    (0x501502F9, 0x501502F9, 0x501502F9),
    (0xD01502F9, 0x80000000, 0x80000000),
    (0x7F7FFFFF, 0x7F7FFFFF, 0x7F7FFFFF),
    (0xFF7FFFFF, 0x80000000, 0x80000000),
    (0x7F800000, 0x7F800000, 0x7F800000),
    (0xFF800000, 0x80000000, 0x80000000),
    (0x7FC00000, 0x7FFFFFFF, 0x7FFFFFFF),
]


def exact_silu(x: float) -> float:
    return x / (1 + math.exp(-x))


def exact_gelu(x: float) -> float:
    u = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
    # 1 + tanh(u) without the cancellation at large negative u.
    return x / (1 + math.exp(-2 * u))


def spread_of_inputs() -> np.ndarray:
    dense = np.linspace(-20, 20, 20_001)
    small = np.exp2(np.linspace(-140, 0, 2_001))
    return np.concatenate([dense, small, -small]).astype(np.float32)


def test_the_bits_are_those_of_the_committed_table():
    x, expected_gelu, expected_silu = (
        np.array(column, np.uint32).view(np.float32)
        for column in zip(*GOLDEN, strict=True)
    )
    assert_bits_equal(gelu(x), expected_gelu)
    assert_bits_equal(silu(x), expected_silu)


# --- the sequence once more, on scalars and exact rationals -------------------


def rounded(x: Fraction) -> Fraction:
    bits = float32_bits(x, "rne")
    return Fraction(float(np.uint32(bits).view(np.float32)))


def scalar_exp(x: Fraction) -> Fraction:
    def constant(bits: int) -> Fraction:
        return Fraction(float(np.uint32(bits).view(np.float32)))

    magic = constant(0x4B400000)
    n = rounded(rounded(x * constant(0x3FB8AA3B) + magic) - magic)
    r = rounded(-n * constant(0x3F318000) + x)
    r = rounded(-n * constant(0xB95E8083) + r)
    p = constant(0x39506967)
    for bits in (0x3AB743CE, 0x3C088908, 0x3D2AA9C1, 0x3E2AAAAA, 0x3F000000):
        p = rounded(p * r + constant(bits))
    p = rounded(p * r + 1)
    p = rounded(p * r + 1)
    return rounded(p * Fraction(2) ** int(n))


def test_the_sequence_has_the_same_bits_in_exact_rationals():
    x = np.linspace(-9, 9, 181).astype(np.float32)
    linear, cubic = from_bits(0xBFCC422A, 0xBD922279).tolist()
    got_silu, got_gelu = silu(x).tolist(), gelu(x).tolist()
    for i, value in enumerate(x.tolist()):
        v = Fraction(value)
        assert got_silu[i] == rounded(v / rounded(1 + scalar_exp(-v)))
        slope = rounded(rounded(v * v) * Fraction(cubic) + Fraction(linear))
        e = scalar_exp(rounded(v * slope))
        assert got_gelu[i] == rounded(v / rounded(1 + e))


# --- accuracy -----------------------------------------------------------------


def test_silu_is_within_three_ulp():
    x = spread_of_inputs()
    exact = np.array([exact_silu(v) for v in x.astype(np.float64)])
    ulp = np.spacing(np.abs(exact).astype(np.float32)).astype(np.float64)
    assert (np.abs(silu(x) - exact) <= 3 * ulp).all()


def test_gelu_is_within_four_ulp_of_one_part_of_its_argument():
    x = spread_of_inputs()
    exact = np.array([exact_gelu(v) for v in x.astype(np.float64).clip(-13)])
    error = np.abs(gelu(x) - exact)
    assert (error <= 2.0**-22 * np.abs(x) + 2.0**-149).all()
    near = np.abs(x) < 1
    ulp = np.spacing(np.abs(exact).astype(np.float32)).astype(np.float64)
    assert (error <= 4 * ulp)[near].all()


def test_gelu_agrees_with_the_tanh_form():
    x = np.linspace(-6, 6, 2_001).astype(np.float32)
    inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x.astype(np.float64) ** 3)
    assert (np.abs(gelu(x) - 0.5 * x * (1 + np.tanh(inner))) < 1e-6).all()


@pytest.mark.parametrize(("function", "turn"), [(gelu, -0.7517), (silu, -1.2784)])
def test_the_functions_fall_to_their_minimum_and_rise_after_it(function, turn):
    x = np.linspace(-130, 40, 4_001).astype(np.float32)
    y = function(x)
    assert (np.diff(y[x < turn]) <= 0).all()
    assert (np.diff(y[x > turn]) >= 0).all()


# --- special values -----------------------------------------------------------


@pytest.mark.parametrize("function", [relu, gelu, silu])
def test_every_nan_gives_the_canonical_nan(function):
    nans = from_bits(0x7FC00000, 0xFFC00000, 0x7F800001, 0xFF800001, 0xFFFFFFFF)
    assert_bits_equal(function(nans), from_bits(*[0x7FFFFFFF] * 5))


@pytest.mark.parametrize("function", [relu, gelu, silu])
def test_plus_infinity_and_large_values_pass(function):
    x = np.array([np.inf, 3.4028235e38, 1e10, 100], np.float32)
    assert_bits_equal(function(x), x)


@pytest.mark.parametrize("function", [gelu, silu])
def test_minus_infinity_and_large_negative_values_give_minus_zero(function):
    x = np.array([-np.inf, -3.4028235e38, -1e10, -130], np.float32)
    assert_bits_equal(function(x), from_bits(*[0x80000000] * 4))


@pytest.mark.parametrize("function", [gelu, silu])
def test_zero_keeps_its_sign(function):
    zeros = np.array([0.0, -0.0], np.float32)
    assert_bits_equal(function(zeros), zeros)


def test_relu_of_anything_not_positive_is_plus_zero():
    x = np.array([-np.inf, -1, -1e-45, -0.0, 0.0, 1e-45, 2.5], np.float32)
    expected = np.array([0, 0, 0, 0, 0, 1e-45, 2.5], np.float32)
    assert_bits_equal(relu(x), expected)


@pytest.mark.parametrize("function", [relu, gelu, silu])
def test_shapes_are_kept_and_float64_is_refused(function):
    assert function(np.zeros((2, 3), np.float32)).shape == (2, 3)
    assert np.shape(function(np.float32(1))) == ()
    with pytest.raises(InputError, match=f"{function.__name__} x: dtype float64"):
        function(np.zeros(3))
