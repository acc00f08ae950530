"""cvt against NumPy, ml_dtypes and Python's integers."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from on_lanes import bits32, bits64, floats, lanes

from fp4ref.errors import NotModelled

INTEGERS = ["u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64"]


def value(pattern: int, kind: str) -> int:
    bits = int(kind[1:])
    pattern %= 1 << bits
    return pattern - (1 << bits) if kind[0] == "s" and pattern >> bits - 1 else pattern


@pytest.mark.parametrize("source", INTEGERS)
@pytest.mark.parametrize("target", INTEGERS)
def test_integers_extend_by_the_sources_sign_or_lose_high_bits(
    source: str, target: str
) -> None:
    bits = int(source[1:])
    a = bits64(1) if bits == 64 else bits32(1).astype(f"u{bits // 8}")
    width = int(target[1:])
    d = lanes(f"cvt.{target}.{source} %d, %a;", f"u{width // 8}", a=a)
    assert d.tolist() == [value(int(x), source) % (1 << width) for x in a]


def test_a_narrow_result_in_a_wide_register_extends_by_its_own_sign() -> None:
    a = bits32(2)
    assert lanes("cvt.s8.s32 %d, %a;", "i4", a=a).tolist() == [
        value(int(x), "s8") for x in a
    ]
    assert lanes("cvt.u8.s32 %d, %a;", "u4", a=a).tolist() == [int(x) & 0xFF for x in a]


@pytest.mark.parametrize("kind", INTEGERS)
def test_integers_become_the_nearest_float(kind: str) -> None:
    bits = int(kind[1:])
    a = bits64(3) if bits == 64 else bits32(3).astype(f"u{bits // 8}")
    d = lanes(f"cvt.rn.f32.{kind} %d, %a;", "f4", a=a)
    for x, found in zip(a, d, strict=True):
        exact = value(int(x), kind)
        below, above = np.nextafter(found, np.float32(-np.inf)), np.nextafter(
            found, np.float32(np.inf)
        )  # fmt: skip
        distance = abs(int(found) - exact)
        assert distance <= abs(int(below) - exact)
        assert distance <= abs(int(above) - exact)
        if distance in (abs(int(below) - exact), abs(int(above) - exact)) and distance:
            assert int(found.view(np.uint32)) % 2 == 0


@pytest.mark.parametrize("kind", INTEGERS)
def test_integers_become_the_nearest_half(kind: str) -> None:
    """Among all halves; 65,504 is the largest, and a tie above it is infinite."""
    halves = np.arange(0x7C00, dtype=np.uint16).view(np.float16).astype(np.float64)
    bits = int(kind[1:])
    a = (bits64(3) if bits == 64 else bits32(3)).astype(f"u{bits // 8}")
    near = [2047, 2049, 2051, 4097, 4098, 4102, 65503, 65504, 65519, 65520, 65535]
    a[: 2 * len(near)] = np.array(near + [-x for x in near]).astype(a.dtype)
    found = lanes(f"cvt.rn.f16.{kind} %d, %a;", "u2", a=a).tolist()
    for x, got in zip(a, found, strict=True):
        exact = value(int(x), kind)
        assert got >> 15 == (exact < 0)
        if abs(exact) >= 65520:
            assert got & 0x7FFF == 0x7C00
            continue
        distances = np.abs(halves - abs(exact))
        nearest = np.flatnonzero(distances == distances.min()).tolist()
        assert got & 0x7FFF in nearest
        assert len(nearest) == 1 or got % 2 == 0


ROUNDINGS = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}


@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize("kind", ["s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64"])
def test_floats_become_integers_inside_the_range(rounding: str, kind: str) -> None:
    a = floats(4)
    near = np.random.default_rng(5).normal(0, 300, 512).astype(np.float32)
    a[::2] = np.where(np.arange(512) % 3 == 0, np.round(near * 2) / 2, near)
    bits = int(kind[1:])
    d = lanes(f"cvt.{rounding}.{kind}.f32 %d, %a;", f"u{bits // 8}", a=a)
    low = -(1 << bits - 1) if kind[0] == "s" else 0
    high = (1 << bits - (kind[0] == "s")) - 1
    for x, found in zip(a, d, strict=True):
        if np.isnan(x):
            want = 1 << 63 if bits == 64 else 0
        elif np.isinf(x):
            want = high if x > 0 else low
        else:
            want = min(max(int(ROUNDINGS[rounding](x)), low), high)
        assert int(found) == want % (1 << bits), x


@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_floats_become_integral_floats(rounding: str) -> None:
    a = floats(6)
    with np.errstate(all="ignore"):
        want = ROUNDINGS[rounding](a).astype(np.float32)
    want.view(np.uint32)[np.isnan(want)] = 0x7FFFFFFF
    d = lanes(f"cvt.{rounding}.f32.f32 %d, %a;", "u4", a=a)
    np.testing.assert_array_equal(d, want.view(np.uint32))


def nans(seed: int) -> np.ndarray:
    """NaNs of float32, quiet and signalling, of both signs and with any payload."""
    payload = np.random.default_rng(seed).integers(1, 1 << 23, 512)
    payload[:4] = 1, 0x3FFFFF, 0x400000, 0x7FFFFF
    found = 0x7F800000 | payload | (np.arange(512) % 2 << 31)
    return found.astype(np.uint32).view(np.float32)


def test_floats_widen_to_doubles_exactly() -> None:
    a = floats(18)
    a[np.isnan(a)] = 1
    d = lanes("cvt.f64.f32 %d, %a;", "f8", a=a)
    np.testing.assert_array_equal(d.view("u8"), a.astype(np.float64).view("u8"))


def test_a_nan_that_widens_keeps_its_payload_and_becomes_quiet() -> None:
    a = nans(19)
    want = []
    for pattern in a.view(np.uint32).tolist():
        sign, payload = pattern >> 31, pattern & 0x7FFFFF
        want.append(sign << 63 | 0x7FF << 52 | 1 << 51 | payload << 29)
    assert lanes("cvt.f64.f32 %d, %a;", "u8", a=a).tolist() == want


def test_a_conversion_without_modifiers_moves_all_bits() -> None:
    a = np.concatenate([floats(20, 512), nans(20)])
    d = lanes("cvt.f32.f32 %d, %a;", "u4", a=a)
    np.testing.assert_array_equal(d, a.view(np.uint32))
    for modifier in (".ftz", ".rni", ".rzi.ftz"):
        d = lanes(f"cvt{modifier}.f32.f32 %d, %a;", "u4", a=nans(21))
        assert set(d.tolist()) == {0x7FFFFFFF}


def test_sat_keeps_a_float_between_zero_and_one() -> None:
    a = floats(7)
    d = lanes("cvt.sat.f32.f32 %d, %a;", "f4", a=a)
    want = np.where(np.isnan(a), 0, np.clip(a, 0, 1)) + np.float32(0)
    np.testing.assert_array_equal(d.view(np.uint32), want.view(np.uint32))


HALVES = {"bf16": ml_dtypes.bfloat16, "f16": np.float16}


@pytest.mark.parametrize("kind", HALVES)
def test_float_to_half_and_back(kind: str) -> None:
    a, b = floats(8), floats(9)
    with np.errstate(all="ignore"):
        want = a.astype(HALVES[kind]).view(np.uint16)
        want_b = b.astype(HALVES[kind]).view(np.uint16)
    want[np.isnan(a)] = want_b[np.isnan(b)] = 0x7FFF
    d = lanes(f"cvt.rn.{kind}.f32 %d, %a;", "u2", a=a)
    np.testing.assert_array_equal(d, want)
    pair = lanes(f"cvt.rn.{kind}x2.f32 %d, %a, %b;", "u4", a=a, b=b)
    both = want.astype(np.uint32) << np.uint32(16) | want_b
    np.testing.assert_array_equal(pair, both)
    codes = np.arange(1 << 10, dtype=np.uint32).astype(np.uint16) * np.uint16(64) + 7
    back = lanes(f"cvt.f32.{kind} %d, %a;", "u4", a=codes)
    exact = codes.view(HALVES[kind]).astype(np.float32)
    exact.view(np.uint32)[np.isnan(exact)] = 0x7FFFFFFF
    if kind == "bf16":  # bf16 is the upper half of a float32, NaN or not
        exact = (codes.astype(np.uint32) * np.uint32(1 << 16)).view(np.float32)
    np.testing.assert_array_equal(back, exact.view(np.uint32))


def test_pairs_of_e2m1_have_the_first_source_on_top() -> None:
    a, b = floats(10), floats(11)
    a[:512] = np.random.default_rng(12).normal(0, 3, 512).astype(np.float32)
    d = lanes(
        "cvt.rn.satfinite.e2m1x2.f32 %b0, %a, %b; cvt.u32.u8 %d, %b0;", "u4", a=a, b=b
    )
    with np.errstate(all="ignore"):
        high, low = (x.astype(ml_dtypes.float4_e2m1fn).view(np.uint8) for x in (a, b))
    high[np.isnan(a)] = low[np.isnan(b)] = 7
    np.testing.assert_array_equal(d, (high & 15).astype(np.uint32) << 4 | low & 15)


FP8 = {
    "e4m3": (ml_dtypes.float8_e4m3fn, 448),
    "e5m2": (ml_dtypes.float8_e5m2, 57344),
}


@pytest.mark.parametrize("name", FP8)
def test_pairs_of_fp8_saturate(name: str) -> None:
    dtype, most = FP8[name]
    a, b = floats(13), floats(14)
    near = np.random.default_rng(15).normal(0, most / 2, 512)
    a[:512] = near.astype(np.float32)
    d = lanes(f"cvt.rn.satfinite.{name}x2.f32 %d, %a, %b;", "u2", a=a, b=b)

    def encode(x: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            codes = np.clip(x, -most, most).astype(dtype).view(np.uint8)
        codes[np.isnan(x)] = 0x7F
        return codes.astype(np.uint16)

    np.testing.assert_array_equal(d, encode(a) << 8 | encode(b))


@pytest.mark.parametrize("rounding", ["rp", "rz"])
def test_pairs_of_ue8m0_are_powers_of_two(rounding: str) -> None:
    a, b = floats(16), floats(17)
    d = lanes(f"cvt.{rounding}.satfinite.ue8m0x2.f32 %d, %a, %b;", "u2", a=a, b=b)

    def encode(x: np.float32) -> int:
        if np.isnan(x):
            return 0xFF
        code = 0
        while code < 0xFE and (
            2.0 ** (code - 127) < abs(float(x))
            if rounding == "rp"
            else 2.0 ** (code - 126) <= abs(float(x))
        ):
            code += 1
        return code

    want = [encode(x) << 8 | encode(y) for x, y in zip(a, b, strict=True)]
    assert d.tolist() == want


def test_every_code_of_the_small_formats_widens_exactly() -> None:
    codes = np.arange(1024, dtype=np.uint32).astype(np.uint16) * np.uint16(257)
    pairs = codes + np.uint16(40)
    for name, (dtype, _) in FP8.items():
        d = lanes(f"cvt.rn.f16x2.{name}x2 %d, %a;", "u4", a=pairs)
        parts = pairs.view(np.uint8).view(dtype)
        with np.errstate(all="ignore"):
            want = parts.astype(np.float32).astype(np.float16)
        bits = want.view(np.uint16).copy()
        bits[np.isnan(want)] = 0x7FFF
        np.testing.assert_array_equal(d, bits.view(np.uint32))
    d = lanes("cvt.rn.bf16x2.ue8m0x2 %d, %a;", "u4", a=pairs)
    scales = pairs.view(np.uint8).view(ml_dtypes.float8_e8m0fnu).astype(np.float32)
    bits = scales.astype(ml_dtypes.bfloat16).view(np.uint16).copy()
    bits[np.isnan(scales)] = 0x7FFF
    np.testing.assert_array_equal(d, bits.view(np.uint32))
    nibbles = np.arange(256, dtype=np.uint16)
    d = lanes("mov.b16 {%b0, _}, %a; cvt.rn.f16x2.e2m1x2 %d, %b0;", "u4", a=nibbles)
    split = np.stack([nibbles & 15, nibbles >> 4], 1).astype(np.uint8)
    want = split.view(ml_dtypes.float4_e2m1fn).astype(np.float32).astype(np.float16)
    np.testing.assert_array_equal(d, want.view(np.uint32)[:, 0])


REFUSED = [
    "cvt.sat.f16.f16 %h1, %h2", "cvt.pack.sat.s8.s32.b32 %r1, %r2, %r3, %r4",
]  # fmt: skip


@pytest.mark.parametrize("text", REFUSED)
def test_other_conversions_are_refused_by_name(text: str) -> None:
    opcode = text.split()[0].replace(".", "[.]")
    with pytest.raises(NotModelled, match=rf"{opcode} \(line \d+\)"):
        lanes(f"mov.b32 %d, 0; {text};", "u4")
