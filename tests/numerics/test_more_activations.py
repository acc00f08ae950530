"""Activations of trees: float64 next to them, and what becomes of special numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from assert_bits import assert_bits_equal

from fp4ref.errors import InputError
from fp4ref.numerics import activation
from fp4ref.numerics.arithmetic import max_nan, min_nan, sub_f32

X = np.concatenate(
    [
        np.linspace(-30, 30, 20_001),
        np.logspace(-40, 1, 2_001),
        -np.logspace(-40, 1, 2_001),
    ]
).astype(np.float32)
_erf = np.vectorize(math.erf)


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


@pytest.mark.parametrize(
    ("function", "exact", "most"),
    [
        (activation.sigmoid, _sigmoid, 1.5e-7),
        (activation.tanh, np.tanh, 1.5e-7),
        (activation.erf, _erf, 5e-7),
        (activation.gelu_erf, lambda x: x / 2 * (1 + _erf(x / math.sqrt(2))), 2e-6),
        (activation.hardswish, lambda x: x * np.clip(x + 3, 0, 6) / 6, 4e-6),
    ],
)
def test_it_is_near_to_float64(
    function: Callable[..., Any], exact: Callable[..., Any], most: float
) -> None:
    wanted = exact(X.astype(np.float64))
    assert np.abs(function(X) - wanted).max() <= most


def test_tanh_is_near_relative_to_its_size() -> None:
    x = X[X != 0]
    x = x[np.abs(x) > 1e-37]
    wanted = np.tanh(x.astype(np.float64))
    assert np.abs(activation.tanh(x) / wanted - 1).max() < 2e-7


def test_the_derivative_of_gelu_is_a_difference_quotient() -> None:
    z = np.linspace(-6, 6, 1_001)
    step = 1e-5

    def gelu(x: Any) -> Any:
        u = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
        return x / 2 * (1 + np.tanh(u))

    wanted = (gelu(z + step) - gelu(z - step)) / (2 * step)
    dy = np.full(z.size, 2, np.float32)
    found = activation.d_gelu(dy, z.astype(np.float32))
    assert np.abs(found - 2 * wanted).max() < 2e-5


SPECIAL = np.array([np.inf, -np.inf, np.nan, 0.0, -0.0], np.float32)


@pytest.mark.parametrize(
    ("function", "wanted"),
    [
        (activation.sigmoid, [1, 0, np.nan, 0.5, 0.5]),
        (activation.tanh, [1, -1, np.nan, 0, 0]),
        (activation.erf, [1, -1, np.nan, 0, -0.0]),
        (activation.gelu_erf, [np.inf, np.nan, np.nan, 0, -0.0]),
        (activation.hardswish, [np.inf, np.nan, np.nan, 0, -0.0]),
    ],
)
def test_infinities_zeros_and_a_nan(function: Any, wanted: list[float]) -> None:
    bits = np.array(wanted, np.float32).view(np.uint32)
    bits[np.isnan(np.array(wanted))] = 0x7FFFFFFF
    assert_bits_equal(function(SPECIAL), bits.view(np.float32))


def test_selections() -> None:
    x, nan = np.array([-2, -0.0, 3, np.nan], np.float32), np.float32(np.nan)
    slope = np.float32(0.5)
    leaky = np.array([-1, -0.0, 3], np.float32)
    assert_bits_equal(activation.leaky_relu(x, slope)[:3], leaky)
    dy = np.array([1, 2, 3, 4], np.float32)
    assert activation.d_relu_z(dy, x).tolist() == [0, 2, 3, 4]
    mask = np.array([0, 1, -0.0, nan], np.float32)
    assert activation.d_relu(dy, mask).tolist() == [0, 2, 0, 4]


def test_the_larger_and_the_smaller_one_order_the_zeros_and_keep_a_nan() -> None:
    a, b = np.meshgrid(
        np.array([-1, -0.0, 0.0, 2, np.nan, np.inf], np.float32), X[::997]
    )
    zero, minus = np.float32(0), np.float32(-0.0)
    for one, other in ((zero, minus), (minus, zero)):
        assert_bits_equal(max_nan(one, other), zero)
        assert_bits_equal(min_nan(one, other), minus)
    assert_bits_equal(max_nan(minus, minus), minus)
    assert_bits_equal(min_nan(np.float32(-1), zero), np.float32(-1))
    nan = np.isnan(a)
    assert np.array_equal(max_nan(a, b)[~nan], np.maximum(a, b)[~nan])
    assert np.array_equal(min_nan(a, b)[~nan], np.minimum(a, b)[~nan])
    for found in (max_nan(a, b), max_nan(b, a), min_nan(a, b), min_nan(b, a)):
        assert set(found[nan].view(np.uint32)) == {0x7FFFFFFF}


def test_a_difference_is_rounded_once() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal((2, 1_000)).astype(np.float32) * np.float32(1e3)
    exact = a.astype(np.float64) - b.astype(np.float64)
    assert_bits_equal(sub_f32(a, b), exact.astype(np.float32))


@pytest.mark.parametrize(
    "function",
    [
        activation.sigmoid,
        activation.tanh,
        activation.erf,
        activation.gelu_erf,
        activation.hardswish,
        lambda x: activation.leaky_relu(x, np.float32(1)),
        lambda x: activation.d_gelu(np.float32(1), x),
        lambda x: max_nan(np.float32(1), x),
        lambda x: min_nan(np.float32(1), x),
    ],
)
def test_float64_is_refused(function: Any) -> None:
    with pytest.raises(InputError, match="float64"):
        function(np.float64(1))
