"""Forms that no Hopper card has or whose bits are not known: exact or bounded meanings.

The references are fractions, ml_dtypes and the C library.
"""

from __future__ import annotations

import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from on_lanes import bits32, floats, lanes

pytestmark = pytest.mark.filterwarnings("ignore:invalid value encountered in cast")

HALVES = {"f16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16)}


def halves(kind: str, seed: int, count: int = 512):
    """Finite patterns of a half, with zeros and subnormals among them."""
    found = bits32(seed, count).astype(np.uint16)
    found[:8] = [0, 0x8000, 1, 0x8001, 0x3F80, 0xBF80, 0x0080, 0x8400]
    values = found.view(HALVES[kind]).astype(np.float64)
    return np.where(np.isfinite(values), found, np.uint16(0x3C00)).astype(np.uint16)


def rounded(value: Fraction, way: str) -> float:
    """The float32 next to a value that is no zero, in a direction."""
    near = np.float32(float(value))
    exact = Fraction(float(near)) if np.isfinite(near) else None
    if exact == value:
        return float(near)
    below = (
        near
        if exact is not None and exact < value
        else np.nextafter(near, np.float32(-np.inf))
    )
    above = np.nextafter(below, np.float32(np.inf))
    if way == "rz":
        way = "rm" if value > 0 else "rp"
    return float(below if way == "rm" else above)


@pytest.mark.parametrize("way", ["rz", "rm", "rp"])
@pytest.mark.parametrize("kind", HALVES)
def test_a_half_may_take_part_in_a_float32_sum(kind: str, way: str) -> None:
    a, b = halves(kind, 1), halves(kind, 2)
    c = floats(3, 512)
    c = np.where(np.isfinite(c), c, np.float32(1.5)).astype(np.float32)
    wide = [x.view(HALVES[kind]).astype(np.float64) for x in (a, b)]
    sums = lanes(f"add.{way}.f32.{kind} %d, %a, %c;", "f4", a=a, c=c)
    fused = lanes(f"fma.{way}.f32.{kind} %d, %a, %b, %c;", "f4", a=a, b=b, c=c)
    checked = 0
    for x, y, z, total, both in zip(*wide, c, sums, fused, strict=True):
        term = Fraction(float(z))
        for exact, found in (
            (Fraction(x) + term, total),
            (Fraction(x) * Fraction(y) + term, both),
        ):
            if exact and abs(exact) < 2**127:
                assert float(found) == rounded(exact, way)
                checked += 1
    assert checked > 900


@pytest.mark.parametrize("way", ["rz", "rm", "rp"])
def test_ftz_flushes_what_is_small_when_it_is_rounded_at_24_bits(way: str) -> None:
    """Products within a few units of 2^-126, in a direction: the exponent is free."""
    rng = np.random.default_rng(9)
    a = (0x00800000 + rng.integers(0, 4, 256)).astype(np.uint32)
    b = (0x3F800000 + rng.integers(-4, 5, 256)).astype(np.uint32)
    a |= (rng.integers(0, 2, 256) << 31).astype(np.uint32)
    x, y = a.view(np.float32), b.view(np.float32)
    found = lanes(f"mul.{way}.ftz.f32 %d, %a, %b;", "f4", a=x, b=y)
    flushed = 0
    for one, other, result in zip(x, y, found, strict=True):
        exact = Fraction(float(one)) * Fraction(float(other))
        want = rounded(exact * 2**100, way) * 2.0**-100
        if abs(want) < 2.0**-126:
            want = math.copysign(0.0, exact)
            flushed += 1
        assert (float(result), np.signbit(result)) == (want, want < 0 or exact < 0)
    assert 30 < flushed < 226


@pytest.mark.parametrize("name", ["eq", "ne", "lt", "le", "gt", "ge", "ltu", "nan"])
@pytest.mark.parametrize("kind", HALVES)
def test_a_pair_of_halves_gives_a_predicate_for_each(kind: str, name: str) -> None:
    a, b = bits32(5), bits32(6)
    b[::2] = a[::2] ^ np.where(np.arange(512) % 3, 0, 0x00010001).astype(np.uint32)
    body = (
        f"setp.{name}.{kind}x2 %p1|%p2, %a, %b; selp.b32 %d, 1, 0, %p1;"
        "selp.b32 %r1, 2, 0, %p2; or.b32 %d, %d, %r1;"
    )
    found = lanes(body, "u4", a=a, b=b)
    for half, shift in ((0, 0), (1, 16)):
        x, y = (
            (v >> np.uint32(shift)).astype(np.uint16).view(HALVES[kind]).astype(float)
            for v in (a, b)
        )
        nan = np.isnan(x) | np.isnan(y)
        if name == "nan":
            want = nan
        else:
            compare = {"eq": np.equal, "ne": np.not_equal, "lt": np.less,
                       "le": np.less_equal, "gt": np.greater,
                       "ge": np.greater_equal}[name[:2]]  # fmt: skip
            want = compare(x, y) & ~nan | nan & name.endswith("u")
        assert np.array_equal(found >> half & 1, want.astype(np.uint32))


SMALL = {
    "e2m3": ml_dtypes.float6_e2m3fn, "e3m2": ml_dtypes.float6_e3m2fn,
    "e2m1": ml_dtypes.float4_e2m1fn, "e4m3": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2,
}  # fmt: skip
WIDTH = {"e2m3": 6, "e3m2": 6, "e2m1": 4, "e4m3": 8, "e5m2": 8}


def saturated(small: str, x: np.ndarray) -> np.ndarray:
    """Codes of finite numbers, the largest in place of more."""
    kind = SMALL[small]
    most = float(ml_dtypes.finfo(kind).max)
    return np.clip(x, -most, most).astype(kind).view(np.uint8)


@pytest.mark.parametrize("half", HALVES)
@pytest.mark.parametrize("small", SMALL)
def test_pairs_of_halves_become_pairs_of_small_floats_and_back(
    small: str, half: str
) -> None:
    low, high = (halves(half, seed) for seed in (7, 8))
    scaled = np.where(np.arange(512) % 2, np.uint16(0x3F00), np.uint16(0)) ^ low
    low = np.where(np.isfinite(scaled.view(HALVES[half]).astype(float)), scaled, low)
    low = low.astype(np.uint16)
    pair = low.astype(np.uint32) | high.astype(np.uint32) << np.uint32(16)
    by = 4 if small == "e2m1" else 8
    for relu in ("", ".relu"):
        body = f"cvt.rn.satfinite{relu}.{small}x2.{half}x2 "
        body += (
            "%b1, %a; cvt.u32.u8 %d, %b1;"
            if by == 4
            else "%h1, %a; cvt.u32.u16 %d, %h1;"
        )
        found = lanes(body, "u4", a=pair)
        for shift, part in ((0, low), (by, high)):
            x = part.view(HALVES[half]).astype(np.float32)
            x = np.where(np.signbit(x), np.float32(0), x) if relu else x
            codes = found >> np.uint32(shift) & np.uint32((1 << by) - 1)
            assert np.array_equal(codes, saturated(small, x))
    codes = np.arange(1 << WIDTH[small], dtype=np.uint32)
    both = codes | codes[::-1] << np.uint32(by)
    move = "cvt.u8.u32 %b1, %a;" if by == 4 else "cvt.u16.u32 %h1, %a;"
    source = "%b1" if by == 4 else "%h1"
    wide = lanes(f"{move} cvt.rn.{half}x2.{small}x2 %d, {source};", "u4", a=both)
    for shift, part in ((0, codes), (16, codes[::-1])):
        want = part.astype(np.uint8).view(SMALL[small]).astype(np.float32)
        got = (wide >> np.uint32(shift)).astype(np.uint16)
        nan = np.isnan(want)
        assert np.array_equal(
            got[~nan], want[~nan].astype(HALVES[half]).view(np.uint16)
        )
        assert (got[nan] == 0x7FFF).all()


def test_six_bit_floats_of_float32_lie_in_bytes() -> None:
    a = np.linspace(-40, 40, 512, dtype=np.float32)
    b = np.linspace(0.01, 3, 512, dtype=np.float32)
    for small in ("e2m3", "e3m2"):
        found = lanes(
            f"cvt.rn.satfinite.{small}x2.f32 %h1, %a, %b; cvt.u32.u16 %d, %h1;",
            "u4",
            a=a,
            b=b,
        )
        assert np.array_equal(found >> 8, saturated(small, a))
        assert np.array_equal(found & 0xFF, saturated(small, b))


@pytest.mark.parametrize(
    ("name", "exact", "bound"),
    [
        ("sin", math.sin, 2.0**-20.5),
        ("cos", math.cos, 2.0**-20.5),
        ("lg2", math.log2, 2.0**-22),
    ],
)
def test_approximate_functions_keep_to_their_bound(name, exact, bound) -> None:
    x = np.linspace(-6.28, 6.28, 512, dtype=np.float32)
    if name == "lg2":
        x = np.linspace(0.5, 2, 512, dtype=np.float32)
    found = lanes(f"{name}.approx.f32 %d, %a;", "f4", a=x)
    for each, got in zip(x, found, strict=True):
        assert abs(float(got) - exact(float(each))) <= bound
    special = np.array([np.nan, np.inf, -np.inf, 0, -0.0], np.float32)
    got = lanes(f"{name}.approx.f32 %d, %a;", "u4", a=special).tolist()
    nan, infinite = 0x7FFFFFFF, 0xFF800000
    assert (
        got
        == {
            "sin": [nan, nan, nan, 0, 1 << 31],
            "cos": [nan, nan, nan, 0x3F800000, 0x3F800000],
            "lg2": [nan, 0x7F800000, nan, infinite, infinite],
        }[name]
    )
