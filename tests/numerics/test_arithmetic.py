from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from assert_bits import assert_bits_equal, from_bits
from exact_dot import float32_bits, float32_value
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fp4ref.errors import InputError
from fp4ref.numerics.arithmetic import add_f32, div_f32, fma_f32, mul_f32

PATTERN = st.integers(0, 0xFFFFFFFF)
FINITE = PATTERN.filter(lambda bits: bits >> 23 & 255 != 255)
NAN, INF, MINUS_INF = 0x7FFFFFFF, 0x7F800000, 0xFF800000
ONE, MINUS_ZERO, FLT_MAX = 0x3F800000, 0x80000000, 0x7F7FFFFF


def bits_of(x: np.ndarray) -> int:
    return int(np.asarray(x).view(np.uint32))


def run(operation, *patterns: int) -> int:
    return bits_of(operation(*(from_bits(p).reshape(()) for p in patterns)))


def expect_exact(operation, patterns, exact: Fraction) -> None:
    expected = float32_bits(exact, "rne")
    if expected or exact:
        # A result that underflows keeps its sign.
        assert run(operation, *patterns) == expected | (MINUS_ZERO if exact < 0 else 0)
    else:
        assert run(operation, *patterns) in (0, MINUS_ZERO)  # has its own tests


@given(FINITE, FINITE, FINITE)
@settings(max_examples=600, deadline=None)
@example(0x39800001, 0x397FFFFE, 0x3F800001)
def test_fma_is_the_exact_result_rounded_once(a, b, c):
    exact = float32_value(a) * float32_value(b) + float32_value(c)
    expect_exact(fma_f32, (a, b, c), exact)


@given(st.data())
@settings(max_examples=600, deadline=None)
def test_fma_is_right_where_the_addend_is_near_the_product(data):
    significand = st.integers(0, 0x7FFFFF)
    a = data.draw(significand) | data.draw(st.integers(60, 190)) << 23
    b = data.draw(significand) | data.draw(st.integers(60, 190)) << 23
    product = float32_bits(float32_value(a) * float32_value(b), "rne")
    shift = data.draw(st.integers(-30, 30)) << 23
    c = min(max(product + shift, 0), FLT_MAX) ^ data.draw(st.sampled_from([0, 1 << 31]))
    exact = float32_value(a) * float32_value(b) + float32_value(c)
    expect_exact(fma_f32, (a, b, c), exact)


def test_fma_does_not_round_the_sum_to_float64_first():
    # 1 + 2^-23 + 2^-24 - 2^-70: just under a tie, and float64 cannot see it.
    step = 2.0**-23
    a = np.float32((1 + step) * 2.0**-12)
    b = np.float32((1 - step) * 2.0**-12)
    c = np.float32(1 + step)
    assert bits_of(fma_f32(a, b, c)) == 0x3F800001
    twice = np.float32(np.float64(a) * np.float64(b) + np.float64(c))
    assert bits_of(twice) == 0x3F800002


@given(PATTERN, PATTERN, PATTERN)
@settings(max_examples=300, deadline=None)
@example(0x39800001, 0x397FFFFE, 0x3F800001)
@example(0x39800001, 0xB97FFFFE, 0x3F800001)
@example(0x39800001, 0xB97FFFFE, 0x3F800002)
def test_fma_of_the_opposite_is_the_opposite(a, b, c):
    result = run(fma_f32, a, b, c)
    opposite = run(fma_f32, a ^ MINUS_ZERO, b, c ^ MINUS_ZERO)
    if result not in (NAN, 0, MINUS_ZERO):
        assert opposite == result ^ MINUS_ZERO


@pytest.mark.parametrize(
    ("a", "b", "c", "expected"),
    [
        (INF, 0, ONE, NAN),
        (INF, ONE, MINUS_INF, NAN),
        (0xFFC12345, ONE, ONE, NAN),
        (ONE, 0x7F800001, ONE, NAN),
        (ONE, ONE, 0x7FC00000, NAN),
        (INF, ONE, FLT_MAX, INF),
        (ONE, ONE, MINUS_INF, MINUS_INF),
        (FLT_MAX, FLT_MAX, MINUS_INF, MINUS_INF),
        (FLT_MAX, 0x40000000, 0, INF),
        (FLT_MAX, ONE, 0x73000000, INF),  # + half a last place: a tie, up
        (FLT_MAX, ONE, 0x72FFFFFF, FLT_MAX),  # + a little less
        (1, 0x3F000000, 0, 0),  # half the smallest subnormal: a tie, to even
        (1, 0x3F000001, 0, 1),
        (3, 0x3F000000, 0, 2),
        (0x00800000, 0x3F000000, 0, 0x00400000),
        (1, 1, 1, 1),
        (1, 0x80000001, 0, MINUS_ZERO),
        (ONE, ONE, 0xBF800000, 0),
        (MINUS_ZERO, ONE, MINUS_ZERO, MINUS_ZERO),
        (MINUS_ZERO, ONE, 0, 0),
        (0, ONE, MINUS_ZERO, 0),
    ],
)
def test_fma_edges(a, b, c, expected):
    assert run(fma_f32, a, b, c) == expected


@given(FINITE, FINITE)
@settings(max_examples=300, deadline=None)
def test_mul_and_add_are_rounded_once(a, b):
    expect_exact(mul_f32, (a, b), float32_value(a) * float32_value(b))
    expect_exact(add_f32, (a, b), float32_value(a) + float32_value(b))


@given(FINITE, FINITE.filter(lambda bits: bits & 0x7FFFFFFF))
@settings(max_examples=300, deadline=None)
def test_div_is_rounded_once(a, b):
    expect_exact(div_f32, (a, b), float32_value(a) / float32_value(b))


@given(PATTERN, PATTERN)
@settings(max_examples=300, deadline=None)
def test_fma_by_one_is_addition_and_fma_with_minus_zero_is_multiplication(a, b):
    assert run(fma_f32, a, ONE, b) == run(add_f32, a, b)
    product = run(mul_f32, a, b)
    assert run(fma_f32, a, b, product & MINUS_ZERO) == product


@pytest.mark.parametrize("operation", [mul_f32, add_f32, div_f32])
def test_every_nan_is_the_canonical_one(operation):
    for nan in (0x7FC00000, 0xFFC00000, 0x7F800001, 0xFFFFFFFF):
        assert run(operation, nan, ONE) == NAN
        assert run(operation, ONE, nan) == NAN


def test_invalid_operations_make_the_canonical_nan():
    assert run(mul_f32, INF, 0) == NAN
    assert run(add_f32, INF, MINUS_INF) == NAN
    assert run(div_f32, 0, 0) == NAN
    assert run(div_f32, INF, INF) == NAN
    assert run(div_f32, ONE, MINUS_ZERO) == MINUS_INF


def test_arguments_broadcast():
    a = np.arange(6, dtype=np.float32).reshape(2, 3)
    expected = a * 2 + np.float32(1)
    assert_bits_equal(fma_f32(a, np.float32(2), np.float32(1)), expected)


@pytest.mark.parametrize("operation", [mul_f32, add_f32, div_f32])
def test_float64_operands_are_refused(operation):
    with pytest.raises(InputError, match="dtype float64; need float32"):
        operation(np.float32(1), 2.0)
    with pytest.raises(InputError, match="fma_f32 b: dtype float64"):
        fma_f32(np.float32(1), 2.0, np.float32(1))
