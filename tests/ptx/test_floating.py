"""float32 instructions against NumPy and exact rationals, special values included."""

from __future__ import annotations

import operator
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from on_lanes import SPECIAL_FLOATS, floats, lanes

F32 = NDArray[np.float32]
NAN = 0x7FFFFFFF

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning:test_floating")


def bits(x: F32) -> list[int]:
    return [int(v) for v in np.asarray(x, np.float32).view(np.uint32)]


def canonical(x: F32) -> F32:
    found = x.view(np.uint32).copy()
    found[np.isnan(x)] = NAN
    return found.view(np.float32)


def flush(x: F32) -> F32:
    tiny = np.abs(x) < np.float32(2.0**-126)
    return np.where(tiny, np.copysign(np.float32(0), x), x).astype(np.float32)


def run(text: str, *sources: F32) -> list[int]:
    names = dict(zip("abc", sources, strict=False))
    return bits(lanes(text, "f4", **names))


OPERATIONS: dict[str, Callable[[F32, F32], F32]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "add.rn": np.add,
    "div.rn": np.divide,
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_arithmetic_is_rounded_to_nearest_and_nan_is_canonical(name: str) -> None:
    a, b = floats(1), floats(2)
    found = run(f"{name}.f32 %d, %a, %b;", a, b)
    with np.errstate(all="ignore"):
        assert found == bits(canonical(OPERATIONS[name](a, b)))


def round_to_float32(value: Fraction, lowest: int = -126) -> float:
    """Nearest 24-bit number, ties to even, by exact arithmetic.

    The exponent is `lowest` or more; its upper end is not checked.
    """
    if value == 0:
        return 0.0
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    exponent = max(exponent, lowest)
    while abs(value) >= Fraction(2) ** (exponent + 1):
        exponent += 1
    while exponent > lowest and abs(value) < Fraction(2) ** exponent:
        exponent -= 1
    step = Fraction(2) ** (exponent - 23)
    return float(round(value / step) * step)


FLUSHING: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "mul.rn": operator.mul,
    "fma.rn": lambda a, b, c: a * b + c,
    "div.rn": operator.truediv,
    "sqrt.rn": np.sqrt,
    "rcp.rn": lambda a: 1 / a,
}
"""On float64 and, but for the root, on rationals."""


def flushed_results(name: str, *sources: F32) -> list[int]:
    """What ``.ftz`` gives: 24 bits with an unbounded exponent, 0 if below 2^-126."""
    sources = tuple(map(flush, sources))
    operation = FLUSHING[name]
    with np.errstate(all="ignore"):
        wide = operation(*(s.astype(np.float64) for s in sources))
        want = canonical(wide.astype(np.float32))
    if name == "sqrt.rn":
        return bits(want)
    for i, near in enumerate(want):
        terms = [float(s[i]) for s in sources]
        divides = name in ("div.rn", "rcp.rn")
        if not np.isfinite([near, *terms]).all() or (divides and terms[-1] == 0):
            continue
        if exact := Fraction(operation(*map(Fraction, terms))):
            rounded = round_to_float32(exact, lowest=-1000)
            signed_zero = np.copysign(0, float(exact))
            want[i] = rounded if abs(rounded) >= 2.0**-126 else signed_zero
    return bits(want)


def around_the_smallest_normal(seed: int, count: int = 1024) -> F32:
    """Values within 2 units of 2^-126, of 2^-125 and of what halves or doubles them."""
    rng = np.random.default_rng(seed)
    bases = [0x00800000, 0x01000000, 0x3F800000, 0x3F000000, 0x40000000, 0x3EFFFFFE]
    bases += [0x7E800000, 0]
    found = rng.choice(bases, count) + rng.integers(-2, 3, count)
    found = np.maximum(found, 0) | rng.integers(0, 2, count) << 31
    return found.astype(np.uint32).view(np.float32)


@pytest.mark.parametrize("name", FLUSHING)
def test_ftz_flushes_what_is_below_the_smallest_normal_at_24_bits(name: str) -> None:
    count = {"fma.rn": 3, "sqrt.rn": 1, "rcp.rn": 1}.get(name, 2)
    near, anywhere = (
        [make(seed) for seed in range(20, 20 + count)]
        for make in (around_the_smallest_normal, floats)
    )
    if count == 3:
        near[2][::2] = np.where(near[2][::2] > 0, np.float32(0), -np.float32(0))
    registers = ", ".join(f"%{r}" for r in "abc"[:count])
    text = f"{name}.ftz.f32 %d, {registers};"
    want = flushed_results(name, *near)
    assert run(text, *near) == want
    assert run(text, *anywhere) == flushed_results(name, *anywhere)
    if name in ("mul", "mul.rn", "fma.rn", "div.rn"):
        # Rounding on the subnormal grid and then flushing is another rule.
        late = flush(np.array(run(text.replace(".ftz", ""), *map(flush, near)),
                              np.uint32).view(np.float32))  # fmt: skip
        assert want != bits(late)


def test_ftz_of_fma_sees_what_float64_would_round_away() -> None:
    """2^-126 less 2^-151 and less a trifle is zero; plus a trifle it is 2^-126."""
    assert 12041362 * 11687838 == 2**47 + 28
    assert 11911921 * 11814844 == 2**47 - 4
    a = np.resize([-12041362 * 2.0**-99, -11911921 * 2.0**-99], 32)
    b = np.resize([11687838 * 2.0**-99, 11814844 * 2.0**-99], 32)
    sources = [x.astype(np.float32) for x in (a, b, np.full(32, 2.0**-126))]
    assert run("fma.rn.ftz.f32 %d, %a, %b, %c;", *sources) == [0, 0x00800000] * 16


@given(seed=st.integers(0, 1 << 30))
@settings(max_examples=8)
def test_fma_rounds_the_exact_value_once(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = (rng.standard_normal(256).astype(np.float32) for _ in range(2))
    # Cancellation down to the last bits of the product.
    c = (-a * b * (1 + rng.integers(-4, 5, 256) * 2.0**-24)).astype(np.float32)
    found = run("fma.rn.f32 %d, %a, %b, %c;", a, b, c)
    want = [
        round_to_float32(Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z)))
        for x, y, z in zip(a, b, c, strict=True)
    ]
    # An exact zero is +0, whatever the signs, unless both terms are -0.
    assert found == bits(np.array(want, np.float32))


def test_fma_does_not_round_through_float64() -> None:
    one = np.float32(1)
    ulp = np.float32(2.0**-23)
    a = np.full(32, (one + ulp) * np.float32(2.0**-12), np.float32)
    b = np.full(32, (one - ulp) * np.float32(2.0**-12), np.float32)
    c = np.full(32, one + ulp, np.float32)
    assert run("fma.rn.f32 %d, %a, %b, %c;", a, b, c) == [0x3F800001] * 32


def test_fma_into_the_subnormals_rounds_once() -> None:
    """Half a unit less 2^-196: in float64 it looks like a tie, and would go up."""
    a = np.full(32, (1 + 2.0**-23) * 2.0**-75, np.float32)
    b = np.full(32, (1 - 2.0**-23) * 2.0**-75, np.float32)
    c = np.full(32, 2.0**-127 + 2.0**-149, np.float32)
    assert run("fma.rn.f32 %d, %a, %b, %c;", a, b, c) == [0x00400001] * 32


def test_fma_of_special_values() -> None:
    inf, zero, one = np.float32(np.inf), np.float32(0), np.float32(1)
    rows = [
        (inf, zero, one, NAN),
        (inf, one, -inf, NAN),
        (inf, one, one, 0x7F800000),
        (zero, one, -zero, 0),
        (-zero, one, -zero, 0x80000000),
        (one, one, -one, 0),
        (np.float32(3e38), np.float32(3e38), -inf, 0xFF800000),
        (np.float32(2.0**-100), np.float32(2.0**-49), zero, 1),
    ]
    a, b, c, want = zip(*(rows * 4), strict=True)
    sources = [np.array(x, np.float32) for x in (a, b, c)]
    assert run("fma.rn.f32 %d, %a, %b, %c;", *sources) == list(want)
    flushed = run("fma.rn.ftz.f32 %d, %a, %b, %c;", *sources)
    assert flushed == [0 if w == 1 else w for w in want]


@pytest.mark.parametrize("nan", ["", ".NaN"])
@pytest.mark.parametrize("name", ["min", "max"])
def test_min_and_max_order_zeros_and_treat_nan_as_asked(name: str, nan: str) -> None:
    a, b = floats(3), floats(4)
    found = run(f"{name}{nan}.f32 %d, %a, %b;", a, b)
    for x, y, got in zip(a, b, found, strict=True):
        if np.isnan(x) and np.isnan(y):
            want = NAN
        elif np.isnan(x) or np.isnan(y):
            want = NAN if nan else bits(np.array([y if np.isnan(x) else x]))[0]
        else:
            # -0 is less than +0.
            key = sorted([(float(x), not np.signbit(x), x), (float(y),
                          not np.signbit(y), y)], key=lambda k: k[:2])  # fmt: skip
            want = bits(np.array([key[0 if name == "min" else 1][2]]))[0]
        assert got == want


@pytest.mark.parametrize("ftz", ["", ".ftz"])
def test_neg_and_abs_change_the_sign_bit(ftz: str) -> None:
    a = floats(5)
    source = flush(a) if ftz else a
    assert run(f"neg{ftz}.f32 %d, %a;", a) == bits(canonical(-source))
    assert run(f"abs{ftz}.f32 %d, %a;", a) == bits(canonical(np.abs(source)))


def test_square_root_and_reciprocal_are_correctly_rounded() -> None:
    a = floats(6)
    with np.errstate(all="ignore"):
        assert run("sqrt.rn.f32 %d, %a;", a) == bits(canonical(np.sqrt(a)))
        want = canonical(np.float32(1) / a)
    assert run("rcp.rn.f32 %d, %a;", a) == bits(want)


def test_rcp_approx_is_within_one_unit_and_exact_for_powers_of_two() -> None:
    rng = np.random.default_rng(7)
    a = (rng.integers(1 << 23, 0xFE << 22, 1024).astype(np.uint32)).view(np.float32)
    a[:250] = np.exp2(np.arange(-125, 125)).astype(np.float32)
    found = np.array(run("rcp.approx.ftz.f32 %d, %a;", a))
    near = np.array(bits(np.float32(1) / a))
    assert np.abs(found - near).max() <= 1
    np.testing.assert_array_equal(found[:250], near[:250])
    assert (found != near).any()


def test_rcp_approx_of_special_values() -> None:
    a = np.array([0x0, 0x80000000, 0x1, 0x807FFFFF, 0x7F800000, 0xFF800000, NAN,
                  0xFFC00000, 0x7F000000, 0x7E800001], np.uint32)  # fmt: skip
    a = np.resize(a, 32).view(np.float32)
    found = run("rcp.approx.ftz.f32 %d, %a;", a)[:10]
    assert found == [0x7F800000, 0xFF800000, 0x7F800000, 0xFF800000, 0, 0x80000000,
                     NAN, NAN, 0, 0]  # fmt: skip


COMPARISONS: dict[str, Callable[[F32, F32], NDArray[np.bool_]]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


@pytest.mark.parametrize("suffix", ["", "u"])
@pytest.mark.parametrize("name", COMPARISONS)
def test_comparisons_with_nan_are_false_and_with_u_true(name: str, suffix: str) -> None:
    a, b = floats(8), floats(9)
    b[::3] = a[::3]
    body = f"setp.{name}{suffix}.f32 %p1, %a, %b; selp.b32 %d, 1, 0, %p1;"
    nan = np.isnan(a) | np.isnan(b)
    want = np.where(nan, suffix == "u", COMPARISONS[name](a, b))
    np.testing.assert_array_equal(lanes(body, "u4", a=a, b=b), want)


def test_num_and_nan_tell_ordered_from_unordered() -> None:
    a, b = floats(10), floats(11)
    nan = np.isnan(a) | np.isnan(b)
    for name, want in (("nan", nan), ("num", ~nan)):
        body = f"setp.{name}.f32 %p1, %a, %b; selp.b32 %d, 1, 0, %p1;"
        np.testing.assert_array_equal(lanes(body, "u4", a=a, b=b), want)


def test_ftz_comparison_sees_subnormals_as_zero() -> None:
    a = np.resize(SPECIAL_FLOATS, 48).view(np.float32)
    body = "setp.eq.ftz.f32 %p1, %a, 0f00000000; selp.b32 %d, 1, 0, %p1;"
    np.testing.assert_array_equal(lanes(body, "u4", a=a), flush(a) == 0)


def test_ex2_and_tanh_are_near_the_functions_and_exact_where_they_must_be() -> None:
    a = np.concatenate([np.linspace(-20, 20, 1000), [0.0, -0.0, 1, -1, 3, 130, -200]])
    a = a.astype(np.float32)
    power = lanes("ex2.approx.ftz.f32 %d, %a;", "f4", a=a)
    want = np.exp2(a.astype(np.float64))
    assert np.abs(power[:1000] / want[:1000] - 1).max() < 2.0**-22
    assert power[1000:].tolist() == [1, 1, 2, 0.5, 8, np.inf, 0]
    tangent = lanes("tanh.approx.f32 %d, %a;", "f4", a=a)
    assert np.abs(tangent - np.tanh(a.astype(np.float64))).max() < 2.0**-10
    assert np.array_equal(tangent, -lanes("tanh.approx.f32 %d, %a;", "f4", a=-a))
