"""cvt.rs: which source and which random bits make which field of the result."""

from __future__ import annotations

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from on_lanes import bits32, lanes

from fp4ref.ptx import PtxError

SMALL = {
    "e2m1": (ml_dtypes.float4_e2m1fn, 4),
    "e2m3": (ml_dtypes.float6_e2m3fn, 8),
    "e3m2": (ml_dtypes.float6_e3m2fn, 8),
    "e4m3": (ml_dtypes.float8_e4m3fn, 8),
    "e5m2": (ml_dtypes.float8_e5m2, 8),
}
HALVES = {"f16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16)}
COUNT = 256


def mirrored(bits: int) -> int:
    return int(f"{bits:016b}"[::-1], 2)


def random_of(word: int, small: str) -> list[int]:
    """The four elements' bits, as text is cut."""
    digits = f"{word:08x}"
    if small == "e2m1":
        digits = digits[0:2] + digits[4:6] + digits[2:4] + digits[6:8]
    first, second = int(digits[:4], 16), int(digits[4:], 16)
    return [mirrored(first), first, mirrored(second), second]


def up(x: float, below: float, above: float, random: int, width: int) -> float:
    place = (Fraction(x) - Fraction(below)) / (Fraction(above) - Fraction(below))
    return above if int(place * (1 << width)) + random >> width else below


def between(kind: np.dtype, code: np.ndarray, seed: int) -> np.ndarray:
    """Float32 numbers from one code to the next, and these two numbers."""
    stored = np.uint8 if kind.itemsize == 1 else np.uint16
    below = code.astype(stored).view(kind).astype(np.float32)
    above = (code + 1).astype(stored).view(kind).astype(np.float32)
    part = np.random.default_rng(seed).random(code.size, np.float32)
    x = below + (above - below) * part
    return np.stack([x, below, above])


@pytest.mark.parametrize("relu", ["", ".relu"])
@pytest.mark.parametrize("small", SMALL)
def test_four_numbers_by_their_random_bits(small: str, relu: str) -> None:
    kind, width = SMALL[small]
    rng = np.random.default_rng(5)
    highest = {"e2m1": 6, "e2m3": 30, "e3m2": 30, "e4m3": 125, "e5m2": 122}[small]
    signs = rng.choice([1, -1], (4, COUNT))
    cases = [
        between(np.dtype(kind), rng.integers(0, highest, COUNT), i) for i in range(4)
    ]
    words = bits32(6, COUNT)
    sources = {
        name: (case[0] * sign).astype(np.float32)
        for name, case, sign in zip("abcd", cases, signs, strict=True)
    }
    sources["e"] = sources.pop("d")
    packed = lanes(
        f"cvt.rs{relu}.satfinite.{small}x4.f32 %d, {{%a, %b, %c, %e}}, %r;",
        "u2" if width == 4 else "u4",
        **sources,
        r=words,
    )
    for lane in range(COUNT):
        randoms = random_of(int(words[lane]), small)
        for i in range(4):
            x, below, above = (float(v) for v in cases[i][:, lane])
            want = up(x, below, above, randoms[i], 16) * float(signs[i, lane])
            if relu and signs[i, lane] < 0:
                want = 0.0
            code = int(packed[lane]) >> width * (3 - i) & (1 << width) - 1
            found = np.array(code, np.uint8).view(kind).astype(np.float64)
            assert found == want, (lane, i, x)
            assert np.signbit(found) == (not relu and signs[i, lane] < 0)


@pytest.mark.parametrize("half", HALVES)
def test_two_numbers_by_their_random_bits(half: str) -> None:
    kind, width = HALVES[half], 13 if half == "f16" else 16
    rng = np.random.default_rng(7)
    low, high = (0x400, 0x7B00) if half == "f16" else (0x1000, 0x7000)
    cases = [between(kind, rng.integers(low, high, COUNT), i) for i in range(2)]
    words = bits32(8, COUNT)
    packed = lanes(
        f"cvt.rs.{half}x2.f32 %d, %a, %b, %r;",
        "u4",
        a=cases[0][0],
        b=cases[1][0],
        r=words,
    )
    for lane in range(COUNT):
        halves = int(words[lane]) >> 16, int(words[lane]) & 0xFFFF
        for i, part in enumerate(halves):
            x, below, above = (float(v) for v in cases[i][:, lane])
            want = up(x, below, above, part & (1 << width) - 1, width)
            code = int(packed[lane]) >> 16 * (1 - i) & 0xFFFF
            assert float(np.array(code, np.uint16).view(kind)) == want, (lane, i, x)


@pytest.mark.parametrize(
    ("limits", "want"),
    [
        ("", [0x7FFF, 0x7C00, 0xFC00, 0x7C00]),
        (".satfinite", [0x7FFF, 0x7BFF, 0xFBFF, 0x7BFF]),
        (".relu", [0x7FFF, 0x7C00, 0, 0x7C00]),
        (".relu.satfinite", [0x7FFF, 0x7BFF, 0, 0x7BFF]),
    ],
)
def test_what_is_no_number_of_f16(limits: str, want: list[int]) -> None:
    x = np.array([np.nan, np.inf, -np.inf, 1e9], np.float32)
    ones = np.full(4, 0xFFFFFFFF, np.uint32)
    packed = lanes(f"cvt.rs{limits}.f16x2.f32 %d, %a, %a, %r;", "u4", a=x, r=ones)
    assert packed.tolist() == [code << 16 | code for code in want]


def test_a_carry_goes_past_the_largest_half_to_infinity() -> None:
    x = np.full(2, 65535.0, np.float32)
    words = np.array([0, 0xFFFFFFFF], np.uint32)
    packed = lanes("cvt.rs.f16x2.f32 %d, %a, %a, %r;", "u4", a=x, r=words)
    assert packed.tolist() == [0x7BFF7BFF, 0x7C007C00]


def test_fewer_than_four_sources_are_refused() -> None:
    with pytest.raises(PtxError, match="four sources"):
        lanes("cvt.rs.satfinite.e4m3x4.f32 %d, {%r1, %r2}, %r3;", "u4")
