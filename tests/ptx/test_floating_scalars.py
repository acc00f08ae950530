"""Sums rounded to zero, copied signs, and comparisons of f16 and f64."""

from __future__ import annotations

import operator
from fractions import Fraction

import numpy as np
import pytest
from on_lanes import SPECIAL_FLOATS, bits32, bits64, floats, lanes

NAN = 0x7FFFFFFF
INFINITY = 0x7F800000


def to_zero(value: Fraction, is_negative: bool) -> int:
    """Bits of the largest float32 that is not larger in magnitude."""
    magnitude, sign = abs(value), is_negative << 31
    low, high = 0, INFINITY - 1
    while low < high:
        middle = (low + high + 1) // 2
        if Fraction(float(np.uint32(middle).view(np.float32))) <= magnitude:
            low = middle
        else:
            high = middle - 1
    return sign | low


def sum_to_zero(a: np.float32, b: np.float32) -> int:
    x, y = float(a), float(b)
    if np.isnan([x, y]).any() or (np.isinf(x) and np.isinf(y) and x != y):
        return NAN
    if np.isinf(x) or np.isinf(y):
        return int(np.float32(x if np.isinf(x) else y).view(np.uint32))
    exact = Fraction(x) + Fraction(y)
    # A sum of zero is +0, but for that of two negative zeros.
    both_negative = bool(np.signbit(a) and np.signbit(b))
    return to_zero(exact, exact < 0 or (exact == 0 and both_negative))


def close_pairs(seed: int, count: int = 1024):
    """Terms whose sum needs a few bits more than 24, of both signs."""
    rng = np.random.default_rng(seed)
    a = rng.integers(1 << 23, 1 << 24, count) * 2.0 ** rng.integers(-3, 4, count)
    b = rng.integers(1, 1 << 24, count) * 2.0 ** rng.integers(-26, 4, count)
    signs = rng.choice([-1, 1], (2, count))
    return (signs[0] * a).astype(np.float32), (signs[1] * b).astype(np.float32)


def every_pair():
    special = SPECIAL_FLOATS.view(np.float32)
    return np.repeat(special, special.size), np.tile(special, special.size)


@pytest.mark.parametrize(
    "make", [close_pairs, lambda seed: (floats(seed), floats(seed + 1)),
             lambda seed: every_pair()]
)  # fmt: skip
def test_add_rz_never_grows_in_magnitude(make) -> None:
    a, b = make(31)
    found = lanes("add.rz.f32 %d, %a, %b;", "u4", a=a, b=b).tolist()
    assert found == [sum_to_zero(x, y) for x, y in zip(a, b, strict=True)]


def test_add_rz_differs_from_the_nearest_sum() -> None:
    a, b = close_pairs(32)
    to_nearest = lanes("add.rn.f32 %d, %a, %b;", "u4", a=a, b=b)
    assert (lanes("add.rz.f32 %d, %a, %b;", "u4", a=a, b=b) != to_nearest).sum() > 99


def test_add_rz_ftz_flushes_sources_and_result() -> None:
    a, b = every_pair()

    def flush(x):
        tiny = np.abs(x) < np.float32(2.0**-126)
        return np.where(tiny, np.copysign(np.float32(0), x), x).astype(np.float32)

    found = lanes("add.rz.ftz.f32 %d, %a, %b;", "u4", a=a, b=b)
    want = [sum_to_zero(x, y) for x, y in zip(flush(a), flush(b), strict=True)]
    flushed = [w & 1 << 31 if w & INFINITY == 0 else w for w in want]
    assert found.tolist() == flushed


def test_copysign_takes_one_bit_of_the_first_and_the_others_of_the_second() -> None:
    a, b = every_pair()
    found = lanes("copysign.f32 %d, %a, %b;", "u4", a=a, b=b)
    for got, x, y in zip(found, a.view(np.uint32), b.view(np.uint32), strict=True):
        assert got >> 31 == x >> 31
        assert got & 0x7FFFFFFF == y & 0x7FFFFFFF


COMPARISONS = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}


def values(kind: str):
    """Bit patterns and what they stand for, by sign, exponent and fraction."""
    if kind == "f16":
        patterns = bits32(41).astype(np.uint16)
        patterns[:12] = [0, 0x8000, 1, 0x8001, 0x3FF, 0x400, 0x7BFF, 0x7C00, 0xFC00,
                         0x7E00, 0xFC01, 0x3C00]  # fmt: skip
        return patterns, [meaning(int(p), 5, 10) for p in patterns]
    patterns = bits64(42)
    places = np.array(
        [0, 1 << 63, 1, 0x7FF << 52, 0xFFF << 52, 0x7FF8 << 48], np.uint64
    )
    patterns[:6] = places
    return patterns, [meaning(int(p), 11, 52) for p in patterns]


def meaning(pattern: int, exponent_bits: int, fraction_bits: int):
    fraction = pattern & ((1 << fraction_bits) - 1)
    exponent = pattern >> fraction_bits & ((1 << exponent_bits) - 1)
    sign = -1 if pattern >> exponent_bits + fraction_bits else 1
    bias = (1 << exponent_bits - 1) - 1
    if exponent == (1 << exponent_bits) - 1:
        return None if fraction else sign * Fraction(2) ** 5000
    if exponent:
        fraction += 1 << fraction_bits
    return sign * fraction * Fraction(2) ** (max(exponent, 1) - bias - fraction_bits)


@pytest.mark.parametrize("kind", ["f16", "f64"])
@pytest.mark.parametrize("suffix", ["", "u"])
@pytest.mark.parametrize("name", COMPARISONS)
def test_comparisons_of_other_floats(name: str, suffix: str, kind: str) -> None:
    a, meanings = values(kind)
    order = np.random.default_rng(43).permutation(a.size)
    order[::3] = np.arange(a.size)[::3]
    b = a[order]
    body = f"setp.{name}{suffix}.{kind} %p1, %a, %b; selp.b32 %d, 1, 0, %p1;"
    found = lanes(body, "u4", a=a, b=b).tolist()
    for got, x, y in zip(found, meanings, [meanings[i] for i in order], strict=True):
        unordered = x is None or y is None
        want = suffix == "u" if unordered else COMPARISONS[name](x, y)
        assert got == want, (x, y)


@pytest.mark.parametrize("kind", ["f16", "f64"])
def test_num_and_nan_of_other_floats(kind: str) -> None:
    a, meanings = values(kind)
    for name in ("nan", "num"):
        body = f"setp.{name}.{kind} %p1, %a, %a; selp.b32 %d, 1, 0, %p1;"
        want = [(m is None) == (name == "nan") for m in meanings]
        assert lanes(body, "u4", a=a).tolist() == want


def test_a_double_is_compared_with_a_literal() -> None:
    a = np.array([0.5, 0.0, -0.0, -1, np.nan], np.float64)
    body = "setp.leu.f64 %p1, %a, 0d0000000000000000; selp.b32 %d, 1, 0, %p1;"
    assert lanes(body, "u4", a=a).tolist() == [0, 1, 1, 1, 1]


def test_mad_of_float64_is_fma_with_its_nans() -> None:
    """Of a, b and c the NaN of b comes first, then c's, then a's; it becomes quiet."""
    one, nans = 0x3FF0000000000000, [0x7FF0000000000001 + i for i in range(3)]
    which = np.arange(32) % 8
    a, b, c = (
        np.where(which >> i & 1, np.uint64(nan), np.uint64(one)).astype(np.uint64)
        for i, nan in enumerate(nans)
    )
    quiet = 1 << 51
    first = [None, 0, 1, 1, 2, 2, 1, 1]
    want = [0x4000000000000000 if i is None else nans[i] | quiet for i in first] * 4
    for name in ("mad", "fma"):
        text = f"{name}.rn.f64 %d, %a, %b, %c;"
        assert lanes(text, "u8", a=a, b=b, c=c).tolist() == want
