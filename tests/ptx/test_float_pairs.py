"""Two elements in one register, and float32 across lanes: the same as one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from on_lanes import SPECIAL_FLOATS, floats, lanes

from fp4ref.numerics.elements import element

Bits = NDArray[np.uint32]


def one_by_one(opcode: str, *sources: NDArray[Any]) -> Bits:
    """The scalar instruction, whose bits other tests compare with a card's."""
    named = dict(zip("abce", sources, strict=False))
    operands = ", ".join(f"%{name}" for name in ("d", *named))
    return lanes(f"{opcode} {operands};", "u4", **named)


@pytest.mark.parametrize("way", ["rn", "rz", "rm", "rp"])
@pytest.mark.parametrize("ftz", ["", ".ftz"])
@pytest.mark.parametrize("name", ["add", "sub", "mul", "fma"])
def test_each_half_of_a_pair_is_the_scalar_operation(
    name: str, ftz: str, way: str
) -> None:
    count = 3 if name == "fma" else 2
    scalars = [floats(seed, 512).view(np.uint32) for seed in range(count)]
    want = one_by_one(f"{name}.{way}{ftz}.f32", *scalars)
    pairs = dict(zip("abc", (x.view(np.uint64) for x in scalars), strict=False))
    operands = ", ".join(f"%{x}" for x in ("d", *pairs))
    found = lanes(f"{name}.{way}{ftz}.f32x2 {operands};", "u8", **pairs)
    np.testing.assert_array_equal(found.view(np.uint32), want)


def test_without_a_rounding_a_pair_rounds_to_nearest() -> None:
    a, b = (floats(seed, 64).view(np.uint64) for seed in (5, 6))
    np.testing.assert_array_equal(
        lanes("mul.f32x2 %d, %a, %b;", "u8", a=a, b=b),
        lanes("mul.rn.f32x2 %d, %a, %b;", "u8", a=a, b=b),
    )


@pytest.mark.parametrize("kind", ["u16", "s16"])
@pytest.mark.parametrize("name", ["add", "min", "max"])
def test_each_half_of_an_integer_pair_is_the_scalar_operation(
    name: str, kind: str
) -> None:
    rng = np.random.default_rng(3)
    a, b = (rng.integers(0, 1 << 16, 256).astype(np.uint16) for _ in range(2))
    a[:4], b[:4] = [0x8000, 0x7FFF, 0xFFFF, 0], [0x7FFF, 1, 1, 0x8000]
    want = lanes(f"{name}.{kind} %d, %a, %b;", "u2", a=a, b=b)
    pair = {"a": a.view(np.uint32), "b": b.view(np.uint32)}
    found = lanes(f"{name}.{kind}x2 %d, %a, %b;", "u4", **pair)
    np.testing.assert_array_equal(found.view(np.uint16), want)


def test_relu_makes_what_is_negative_zero() -> None:
    a = np.array([-5, 5, -1, 0] * 8, np.int32)
    b = np.array([-7, -7, 3, -2] * 8, np.int32)
    found = lanes("max.relu.s32 %d, %a, %b;", "i4", a=a, b=b)
    assert found[:4].tolist() == [0, 5, 3, 0]
    halves = a.astype(np.int16).view(np.uint32), b.astype(np.int16).view(np.uint32)
    found = lanes("min.relu.s16x2 %d, %a, %b;", "u4", a=halves[0], b=halves[1])
    assert found.view(np.int16)[:4].tolist() == [0, 0, 0, 0]


# -- three sources, and all lanes ------------------------------------------------


@pytest.mark.parametrize("modifiers", ["", ".NaN", ".ftz", ".ftz.NaN"])
@pytest.mark.parametrize("name", ["min", "max"])
def test_three_sources_are_two_and_one(name: str, modifiers: str) -> None:
    a, b, c = (floats(seed, 512).view(np.uint32) for seed in (7, 8, 9))
    opcode = f"{name}{modifiers}.f32"
    want = one_by_one(opcode, one_by_one(opcode, a, b), c)
    found = lanes(f"{opcode} %d, %a, %b, %c;", "u4", a=a, b=b, c=c)
    np.testing.assert_array_equal(found, want)


def test_abs_compares_magnitudes() -> None:
    a, b, c = (np.array(x * 8, np.float32) for x in ([-3, 1], [2, -5], [0.5, 4]))
    found = lanes("max.abs.f32 %d, %a, %b, %c;", "f4", a=a, b=b, c=c)
    assert found[:2].tolist() == [3, 5]


@pytest.mark.parametrize("modifiers", ["", ".NaN", ".abs", ".abs.NaN"])
@pytest.mark.parametrize("name", ["min", "max"])
def test_a_reduction_is_the_operation_over_all_lanes(name: str, modifiers: str) -> None:
    numbers = floats(11, 4096).view(np.uint32)[:1024].copy()
    rows = numbers.reshape(32, 32)
    rows[:24] &= np.uint32(0x7F7FFFFF) | np.uint32(0x80000000)  # no NaN
    rows[0] = np.resize(SPECIAL_FLOATS, 32)
    found = lanes(f"redux.sync.{name}{modifiers}.f32 %d, %a, -1;", "u4", a=numbers)
    taken = rows & np.uint32(0x7FFFFFFF) if "abs" in modifiers else rows
    nan = ".NaN" if "NaN" in modifiers else ""
    want = np.ascontiguousarray(taken[:, 0])
    for column in taken.T:
        want = one_by_one(f"{name}{nan}.f32", want, np.ascontiguousarray(column))
    np.testing.assert_array_equal(found.reshape(32, 32), want[:, None].repeat(32, 1))


def test_a_reduction_is_of_the_members_of_its_mask() -> None:
    a = np.arange(32, dtype=np.float32)
    mask = np.where(a < 8, np.uint32(0xFF), np.uint32(0xFFFFFF00)).astype(np.uint32)
    found = lanes("redux.sync.max.f32 %d, %a, %b;", "f4", a=a, b=mask)
    assert found.tolist() == [7] * 8 + [31] * 24


@pytest.mark.parametrize("small", ["e2m1", "e4m3", "e5m2"])
def test_small_floats_become_bf16_exactly(small: str) -> None:
    of = element(small)
    codes = np.arange(1 << 2 * of.bits, dtype=np.uint32).astype(f"u{of.bits // 4}")
    codes = codes[:: max(1, codes.size // 1024)]
    found = lanes(f"cvt.rn.bf16x2.{small}x2 %d, %a;", "u4", a=codes)
    halves = found.view(np.uint16).reshape(-1, 2)
    wide = codes.astype(np.uint32)
    for place, column in enumerate(halves.T):
        low = wide >> np.uint32(place * of.bits) & np.uint32((1 << of.bits) - 1)
        want = of.values(low)
        got = (column.astype(np.uint32) << np.uint32(16)).view(np.float32)
        np.testing.assert_array_equal(got, want)
