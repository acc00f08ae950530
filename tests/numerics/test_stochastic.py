"""stochastic: away from zero exactly on the carry of random and dropped bits.

The oracle is exact: fractions of the value between its two neighbours in ml_dtypes.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from fractions import Fraction
from functools import cache

import ml_dtypes
import numpy as np
import pytest

from fp4ref.errors import InputError
from fp4ref.numerics.elements import element
from fp4ref.numerics.stochastic import FORMATS, encode_stochastic, random_fields

TYPES = {
    "e2m1": ml_dtypes.float4_e2m1fn,
    "e2m3": ml_dtypes.float6_e2m3fn,
    "e3m2": ml_dtypes.float6_e3m2fn,
    "e4m3": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
}
WIDTH = dict.fromkeys(FORMATS, 16) | {"f16": 13}


@cache
def magnitudes(format: str) -> list[Fraction]:
    """The value of each code from 0 to the largest finite one."""
    count = 1 << ml_dtypes.finfo(TYPES[format]).bits - 1
    stored = np.uint16 if count > 256 else np.uint8
    codes = np.arange(count).astype(stored).view(TYPES[format])
    with np.errstate(invalid="ignore"):  # signalling NaN
        values = codes.astype(np.float64)
    return [Fraction(v) for v in values[np.isfinite(values)].tolist()]


def expected(x: float, random: int, format: str) -> int:
    """The code of a finite number."""
    values = magnitudes(format)
    sign = int(math.copysign(1, x) < 0) << int(ml_dtypes.finfo(TYPES[format]).bits) - 1
    exact = abs(Fraction(x))
    last = len(values) - 1
    below = bisect_right(values, exact) - 1
    step = values[below] - values[below - 1] if below == last else None
    step = step or values[below + 1] - values[below]
    steps = 1 << WIDTH[format]
    place = math.floor((exact - values[below]) / step * steps)
    up = place + random >= steps
    overflow = last + 1 if TYPES[format] in (np.float16, ml_dtypes.bfloat16) else last
    return sign | min(below + up, overflow)


def near_ties(format: str, rng: np.random.Generator) -> np.ndarray:
    """Numbers at, between and beside neighbours, ties above all, of both signs."""
    values = magnitudes(format)
    some = range(len(values) - 1)
    if len(values) > 200:
        some = rng.choice(len(values) - 1, 60).tolist() + [0, 1, len(values) - 2]
    found = []
    for i in some:
        gap = values[i + 1] - values[i]
        for part in (0, Fraction(1, 4), Fraction(1, 2), Fraction(rng.random())):
            x = np.float32(float(values[i] + gap * part))
            found += [
                x,
                np.nextafter(x, np.float32(0)),
                np.nextafter(x, np.float32(9e9)),
            ]
    beyond = min(float(values[-1]) * 1.25, float(np.finfo(np.float32).max))
    found += [np.float32(beyond), np.float32(1e-40)]
    x = np.array(found, np.float32)
    return np.concatenate([x, -x])


@pytest.mark.parametrize("format", FORMATS)
def test_it_is_the_carry_of_the_highest_dropped_bits(format: str) -> None:
    rng = np.random.default_rng(3)
    x = near_ties(format, rng)
    top = 1 << WIDTH[format]
    tried = [0, 1, top // 4, top // 2 - 1, top // 2, top // 2 + 1, top - 1]
    for random in [*tried, *rng.integers(0, top, 4).tolist()]:
        found = encode_stochastic(x, np.full(x.shape, random, np.uint16), format)
        want = [expected(float(v), random, format) for v in x]
        wrong = np.flatnonzero(found != want)
        assert not wrong.size, (random, x[wrong[0]], found[wrong[0]], want[wrong[0]])


@pytest.mark.parametrize("format", FORMATS)
def test_the_mean_over_all_random_bits_is_the_number(format: str) -> None:
    """Exactly, if the number has no bits below the random ones."""
    values = magnitudes(format)
    top = 1 << WIDTH[format]
    rng = np.random.default_rng(4)
    for i in rng.choice(len(values) - 1, 4).tolist():
        place = int(rng.integers(0, top))
        exact = values[i] + (values[i + 1] - values[i]) * Fraction(place, top)
        x = np.full(top, float(exact), np.float32)
        if Fraction(float(x[0])) != exact:
            continue  # a subnormal of bf16: float32 has no bits to spare
        codes = encode_stochastic(x, np.arange(top).astype(np.uint16), format)
        total = sum(values[c] * n for c, n in enumerate(np.bincount(codes)) if n)
        assert total == exact * top


@pytest.mark.parametrize("format", FORMATS)
def test_numbers_of_the_format_stay(format: str) -> None:
    x = np.array([float(v) for v in magnitudes(format)], np.float32)
    for random in (0, (1 << WIDTH[format]) - 1):
        codes = encode_stochastic(x, np.full(x.shape, random, np.uint16), format)
        assert (codes == np.arange(x.size)).all()


@pytest.mark.parametrize("format", FORMATS)
def test_specials_are_those_of_the_nearest_conversion(format: str) -> None:
    x = np.array([np.nan, -np.nan, np.inf, -np.inf, -0.0, 3e38, -3e38], np.float32)
    if format == "bf16":
        x = x[:5]
    for random in (0, 0xFFFF):
        codes = encode_stochastic(x, np.full(x.shape, random, np.uint16), format)
        assert (codes == element(format).encode(x)).all()


# What a B200 took of the operand 0x12345678, and of one bit (public measurements).
FIELDS = [
    ("e4m3", 0x12345678, (0x2C48, 0x1234, 0x1E6A, 0x5678)),
    ("e5m2", 0x12345678, (0x2C48, 0x1234, 0x1E6A, 0x5678)),
    ("e2m1", 0x12345678, (0x6A48, 0x1256, 0x1E2C, 0x3478)),
    ("e4m3", 1 << 8, (0, 0, 0x0080, 0x0100)),
    ("e2m1", 1 << 8, (0x8000, 0x0001, 0, 0)),
    ("f16", 0xFFFF1234, (0x1FFF, 0x1234)),
    ("bf16", 0xABCD1234, (0xABCD, 0x1234)),
]


@pytest.mark.parametrize(("format", "word", "fields"), FIELDS)
def test_two_elements_share_sixteen_bits_in_both_orders(
    format: str, word: int, fields: tuple[int, ...]
) -> None:
    assert tuple(int(f) for f in random_fields(np.uint32(word), format)) == fields


@pytest.mark.parametrize("format", FORMATS)
def test_each_bit_of_the_operand_is_one_bit_of_each_of_its_elements(
    format: str,
) -> None:
    words = np.uint32(1) << np.arange(32, dtype=np.uint32)
    fields = np.stack(random_fields(words, format))
    counts = np.array([[int(f).bit_count() for f in field] for field in fields])
    shared = 1 if len(fields) == 2 else 2
    unused = [13, 14, 15, 29, 30, 31] if format == "f16" else []
    assert counts.sum(axis=0).tolist() == [
        0 if bit in unused else shared for bit in range(32)
    ]
    assert counts.sum(axis=1).tolist() == [WIDTH[format]] * len(fields)


def test_there_are_sixteen_bits_for_each_element() -> None:
    x = np.ones(4, np.float32)
    with pytest.raises(InputError, match=r"shape \(3,\), x \(4,\)"):
        encode_stochastic(x, np.zeros(3, np.uint16), "e2m1")
    with pytest.raises(InputError, match="uint16"):
        encode_stochastic(x, np.zeros(4, np.uint8), "e2m1")
    with pytest.raises(InputError, match="format: 'ue8m0'"):
        encode_stochastic(x, np.zeros(4, np.uint16), "ue8m0")
