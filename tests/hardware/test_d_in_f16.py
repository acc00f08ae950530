"""D in FP16: the low half of a cell, and the model's sum rounded once."""

from __future__ import annotations

import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from on_machine import launch, machine
from test_mma_unscaled import (
    A_AT,
    B_AT,
    commit_and_wait,
    descriptor,
    idesc,
    put_memory,
    tile,
    with_tmem,
)

from fp4ref.errors import DescriptorFault, UninitialisedRead
from fp4ref.hardware import mma_unscaled, tmem
from fp4ref.hardware.instr_descriptor import UnscaledInstrDescriptor
from fp4ref.numerics import ElementFormat
from fp4ref.numerics.dot_unscaled_f16 import matmul_unscaled_f16

N = 16
DTYPES = {
    "f16": (np.float16, 0, ElementFormat.F16),
    "e4m3": (ml_dtypes.float8_e4m3fn, 0, ElementFormat.E4M3),
    "e5m2": (ml_dtypes.float8_e5m2, 1, ElementFormat.E5M2),
}
LEAST = {"f16": -14, "e4m3": -6, "e5m2": -14}


def parts(value, least):
    """Significand and exponent as MMA-Sim has them: a subnormal keeps the least."""
    significand, exponent = math.frexp(value)
    significand, exponent = Fraction(significand) * 2, exponent - 1
    if value == 0:
        return Fraction(0), -126
    if exponent < least:
        significand *= Fraction(2) ** (exponent - least)
        exponent = least
    return significand, exponent


def exact(a, b, c, least):
    """One element of D, in fractions; None where no float16 tells it."""
    terms = [parts(c, -14)]
    for x, y in zip(a, b, strict=True):
        (sx, ex), (sy, ey) = parts(x, least), parts(y, least)
        terms.append((sx * sy, ex + ey))
    top = max(exponent for _, exponent in terms)
    total = Fraction(0)
    for significand, exponent in terms:
        scaled = significand * Fraction(2) ** (25 + exponent - top)
        total += math.trunc(scaled)
    value = total * Fraction(2) ** (top - 25)
    # To nearest, ties to even, in steps of float16.
    size = abs(value)
    if size == 0:
        return 0.0
    step = max(math.floor(math.log2(float(size))), -14) - 10
    units = value / Fraction(2) ** step
    rounded = round(units)  # of a Fraction: ties to even
    found = float(rounded * Fraction(2) ** step)
    return math.copysign(math.inf, found) if abs(found) >= 65520 else found


def operands(name, seed, scale):
    dtype, _, element = DTYPES[name]
    rng = np.random.default_rng(seed)
    k = 256 // element.bits
    shapes = (128, k), (N, k)
    return [(rng.standard_normal(s) * scale).astype(dtype) for s in shapes]


@pytest.mark.parametrize("scale", [1 / 64, 1, 12])
@pytest.mark.parametrize("name", DTYPES)
def test_every_bit_is_that_of_the_exact_sum(name, scale):
    _, _, element = DTYPES[name]
    a, b = operands(name, 3, scale)
    a[5] = a[5] * 0 + 1  # ties and cancellation: small integers beside large ones
    c = (np.random.default_rng(4).standard_normal((128, N)) * 8).astype(np.float16)
    c[5:9] *= 64
    codes = [x.view(f"u{x.dtype.itemsize}") for x in (a, b)]
    found = matmul_unscaled_f16(*codes, c, a_format=element, b_format=element)
    values = a.astype(float), b.astype(float)
    for m in range(0, 128, 5):
        for n in range(N):
            want = exact(values[0][m], values[1][n], float(c[m, n]), LEAST[name])
            assert found[m, n].view("u2") == np.float16(want).view("u2"), (m, n)


def test_a_sum_just_above_a_tie_is_rounded_up():
    """2^-24 beyond half a step: float32 would lose it before the second rounding."""
    a, b = np.zeros((1, 16), np.float16), np.zeros((1, 16), np.float16)
    a[0, :3], b[0, :3] = (1, 2.0**-11, 2.0**-14), (1, 1, 2.0**-11)
    found = matmul_unscaled_f16(
        a.view("u2"),
        b.view("u2"),
        a_format=ElementFormat.F16,
        b_format=ElementFormat.F16,
    )
    assert found[0, 0] == 1 + 2.0**-10


def test_special_terms():
    a, b = np.ones((6, 16), np.float16), np.ones((1, 16), np.float16)
    c = np.zeros((6, 1), np.float16)
    a[0, 0], a[1, 0], c[2, 0] = np.inf, np.nan, -np.inf
    a[3, 0], c[3, 0] = np.inf, -np.inf
    a[4], c[4] = 4095, 0
    a[5], c[5] = -0.0, -0.0
    found = matmul_unscaled_f16(
        a.view("u2"), b.view("u2"), c,
        a_format=ElementFormat.F16, b_format=ElementFormat.F16,
    )  # fmt: skip
    want = [0x7C00, 0x7FFF, 0xFC00, 0x7FFF, 0x7C00, 0x0000]
    assert found.view("u2")[:, 0].tolist() == want


# -- on the machine


def product(name, *, accumulate=True, m=128, mask=()):
    """Cells of D after one MMA, and what D held."""
    kind = "f16" if name == "f16" else "f8f6f4"
    code = DTYPES[name][1]
    before = np.random.default_rng(2).standard_normal((128, N)).astype(np.float16)
    got = []

    def steps(warp):
        cells = before.view("u2").astype(np.uint32) | 0xABCD0000
        for lane in range(128):
            warp.tmem.poke(lane * 2048, cells[lane].view(np.uint8))
        word = idesc(N, a=code, b=code, d_type=0, m=m)
        tiles = descriptor(A_AT), descriptor(B_AT)
        mma_unscaled.mma(
            warp, 0, *tiles, word, accumulate, kind=kind, disable_output_lanes=mask
        )
        yield from commit_and_wait(warp)
        got.append(warp.tmem.cells[:, :N].copy())

    launch(machine("late"), with_tmem(steps), setup=put_memory)
    return got[0], before


@pytest.mark.parametrize("accumulate", [True, False])
@pytest.mark.parametrize("name", DTYPES)
def test_d_is_in_the_low_halves(name, accumulate):
    found, before = product(name, accumulate=accumulate)
    element = DTYPES[name][2]
    codes = [
        tile(rows, at).view(f"u{element.bits // 8}") for rows, at in
        ((128, A_AT), (N, B_AT))
    ]  # fmt: skip
    c = before if accumulate else None
    want = matmul_unscaled_f16(*codes, c, a_format=element, b_format=element)
    np.testing.assert_array_equal(found & 0xFFFF, want.view("u2"))


def test_d_of_64_rows_and_of_some_lanes():
    whole, _ = product("f16")
    some, before = product("f16", mask=(0, 0xFFFF0000, 0, 0))
    np.testing.assert_array_equal(some[:48] & 0xFFFF, whole[:48] & 0xFFFF)
    np.testing.assert_array_equal(
        some[48:64], before[48:64].view("u2") | np.uint32(0xABCD0000)
    )
    np.testing.assert_array_equal(some[64:] & 0xFFFF, whole[64:] & 0xFFFF)
    # Row 16 of 64 is in lane 32: its A is row 16 of the tile, with the C of lane 32.
    of_64, _ = product("f16", m=64, accumulate=False)
    plain, _ = product("f16", accumulate=False)
    np.testing.assert_array_equal(of_64[32:48] & 0xFFFF, plain[16:32] & 0xFFFF)


def test_d_is_loaded_packed_and_its_high_halves_have_no_value():
    def steps(packed):
        def run(warp):
            word = idesc(N, d_type=0)
            tiles = descriptor(A_AT), descriptor(B_AT)
            mma_unscaled.mma(warp, 0, *tiles, word, False)
            yield from commit_and_wait(warp)
            registers = tmem.ld(warp, 0, "32x32b", N // (1 + packed), packed=packed)
            yield from tmem.wait_ld(warp)
            low = warp.tmem.cells[:32, :N] & 0xFFFF
            np.testing.assert_array_equal(registers.words.view("u2"), low)

        return with_tmem(run)

    launch(machine("late"), steps(True), setup=put_memory)
    with pytest.raises(UninitialisedRead):
        launch(machine("late"), steps(False), setup=put_memory)


@pytest.mark.parametrize(
    ("kind", "code", "d_type"),
    [("f16", 1, 0), ("tf32", 2, 0), ("f16", 0, 2), ("f8f6f4", 0, 3)],
)
def test_types_of_d_that_a_kind_lacks(kind, code, d_type):
    word = idesc(N, a=code, b=code, d_type=d_type)
    with pytest.raises(DescriptorFault, match="D type"):
        UnscaledInstrDescriptor.decode(word, kind)
