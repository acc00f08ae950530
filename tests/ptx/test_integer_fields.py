"""Masks, fields, dp2a and the carry flag, against Python's own integers."""

from __future__ import annotations

import numpy as np
import pytest
from on_lanes import bits32, bits64, lanes

from fp4ref.ptx import UndefinedRegister
from fp4ref.ptx.instructions.masks import BaseOutOfMask

EDGES = np.array([0, 1, 2, 5, 16, 30, 31, 32, 33, 63, 64, 255, 0xFFFFFFFF], np.uint32)
FULL = (1 << 32) - 1


def pairs() -> tuple[np.ndarray, np.ndarray]:
    a, b = np.meshgrid(EDGES, EDGES)
    return a.ravel(), b.ravel()


@pytest.mark.parametrize("mode", ["clamp", "wrap"])
def test_a_mask_has_ones_from_a_bit_on(mode: str) -> None:
    def want(a: int, b: int) -> int:
        limit = min if mode == "clamp" else lambda x, _: x % 32
        first, count = limit(a, 32), limit(b, 32)
        return sum(1 << i for i in range(first, min(first + count, 32)))

    a, b = pairs()
    found = lanes(f"bmsk.{mode}.b32 %d, %a, %b;", "u4", a=a, b=b)
    assert found.tolist() == [want(*map(int, x)) for x in zip(a, b, strict=True)]
    assert lanes("bmsk.wrap.b32 %d, 1, 2;", "u4").tolist() == [6] * 32  # PTX's example


@pytest.mark.parametrize("kind", ["s32", "u32"])
@pytest.mark.parametrize("mode", ["clamp", "wrap"])
def test_a_field_is_extended_by_its_sign_or_by_zeros(mode: str, kind: str) -> None:
    def want(a: int, b: int) -> int:
        count = min(b, 32) if mode == "clamp" else b % 32
        field = a & (1 << count) - 1
        if kind == "s32" and count and field >> count - 1:
            field -= 1 << count
        return field & FULL

    a = bits32(1, 13 * 64)
    b = np.tile(EDGES, 64)
    found = lanes(f"szext.{mode}.{kind} %d, %a, %b;", "u4", a=a, b=b)
    assert found.tolist() == [want(*map(int, x)) for x in zip(a, b, strict=True)]


def test_the_nth_one_is_found_upwards_and_downwards() -> None:
    odd, ends = 0xAAAAAAAA, 0x80000001
    examples = [
        *((odd, 3, 1, 3), (odd, 3, -1, 3), (odd, 2, 1, 3), (odd, 2, -1, 1)),  # PTX's
        *((odd, 3, 0, 3), (odd, 2, 0, FULL), (1, 0, 2, FULL)),
        *((ends, 0, 2, 31), (ends, 31, -2, 0)),
    ]
    words = [np.array(x, np.uint32) for x in np.array(examples).T & FULL]
    named = dict(zip("abc", words, strict=False))
    found = lanes("fns.b32 %d, %a, %b, %c;", "u4", **named)
    assert (found == words[3]).all()
    with pytest.raises(BaseOutOfMask, match="from bit 32"):
        lanes("fns.b32 %d, %tid32, 32, 1;", "u4")


@pytest.mark.parametrize("half", ["lo", "hi"])
@pytest.mark.parametrize("a_kind", ["s32", "u32"])
@pytest.mark.parametrize("b_kind", ["s32", "u32"])
def test_two_products_of_halves_and_bytes(half: str, a_kind: str, b_kind: str) -> None:
    def part(word: int, at: int, bits: int, kind: str) -> int:
        value = word >> at & (1 << bits) - 1
        return value - (value >> bits - 1 << bits if kind == "s32" else 0)

    a, b, c = (bits32(seed, 512) for seed in (2, 3, 4))
    opcode = f"dp2a.{half}.{a_kind}.{b_kind}"
    found = lanes(f"{opcode} %d, %a, %b, %c;", "u4", a=a, b=b, c=c)
    first = 0 if half == "lo" else 16
    for x, y, z, total in zip(*(v.tolist() for v in (a, b, c, found)), strict=True):
        products = (
            part(x, 16 * i, 16, a_kind) * part(y, first + 8 * i, 8, b_kind)
            for i in range(2)
        )
        assert total == (sum(products) + z) & FULL


@pytest.mark.parametrize(("half", "selector"), [("lo", 0x7610), ("hi", 0x1076)])
def test_bytes_that_dp2a_does_not_read_need_no_value(half: str, selector: int) -> None:
    """nvcc puts two bytes beside two that it leaves open, and multiplies the first."""
    body = (
        ".reg .b32 %two, %open; prmt.b32 %two, %a, %open, {:#x};"
        "dp2a.{}.u32.u32 %d, %a, %two, %a;"
    )
    a = bits32(2, 64)
    found = lanes(body.format(selector, half), "u4", a=a)
    for x, total in zip(a.tolist(), found.tolist(), strict=True):
        products = (x & 0xFFFF) * (x & 0xFF) + (x >> 16) * (x >> 8 & 0xFF)
        assert total == (products + x) & FULL
    other = {"lo": "hi", "hi": "lo"}[half]
    with pytest.raises(UndefinedRegister):
        lanes(body.format(selector, other), "u4", a=a)


# -- the carry flag


def words(values: np.ndarray) -> list[int]:
    return [int(v) for v in values]


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("name", ["add", "sub"])
@pytest.mark.parametrize("sign", "us")
def test_two_words_are_one_number(name: str, bits: int, sign: str) -> None:
    make, kind = (bits32, "u4") if bits == 32 else (bits64, "u8")
    a, b, c, e = (make(seed, 512) for seed in (5, 6, 7, 8))
    a[:8], c[:8] = [0, FULL, 1, 0, FULL, FULL, 5, 5], [0, 1, 1, 1, FULL, 0, 5, 6]
    both = f"{name}.cc.{sign}{bits} %lo, %a, %c; {name}c.{sign}{bits} %hi, %b, %e;"
    body = f".reg .b{bits} %lo, %hi; {both} mov.b{bits} %d, %PART;"
    inputs = dict(zip("abce", (a, b, c, e), strict=True))
    low, high = (lanes(body.replace("PART", p), kind, **inputs) for p in ("lo", "hi"))
    for *x, lo, hi in zip(*map(words, (a, b, c, e, low, high)), strict=True):
        first, second = x[0] | x[1] << bits, x[2] | x[3] << bits
        total = first + second if name == "add" else first - second
        assert lo | hi << bits == total % (1 << 2 * bits)


def test_a_product_of_two_words_is_four() -> None:
    """As wide multiplication is written: mad.lo.cc, madc.hi.cc, and so on."""
    body = """
        .reg .b32 %w<4>;
        mul.lo.u32 %w0, %a, %c; mul.hi.u32 %w1, %a, %c;
        mad.lo.cc.u32 %w1, %a, %e, %w1; madc.hi.u32 %w2, %a, %e, 0;
        mad.lo.cc.u32 %w1, %b, %c, %w1; madc.hi.cc.u32 %w2, %b, %c, %w2;
        addc.u32 %w3, 0, 0;
        mad.lo.cc.u32 %w2, %b, %e, %w2; madc.hi.u32 %w3, %b, %e, %w3;
        mov.b32 %d, %wPART;
    """
    a, b, c, e = (bits32(seed, 512) for seed in (9, 10, 11, 12))
    inputs = dict(zip("abce", (a, b, c, e), strict=True))
    parts = [lanes(body.replace("PART", str(i)), "u4", **inputs) for i in range(4)]
    for *x, w0, w1, w2, w3 in zip(*map(words, (a, b, c, e, *parts)), strict=True):
        product = (x[0] | x[1] << 32) * (x[2] | x[3] << 32)
        assert w0 | w1 << 32 | w2 << 64 | w3 << 96 == product


def test_a_signed_high_half_has_its_sign_and_a_plain_sum_keeps_the_flag() -> None:
    a = np.array([-1, -5, 7, 2**31 - 1] * 8, np.int32)
    b = np.array([1, 3, -2, 2**31 - 1] * 8, np.int32)
    body = """
        .reg .b32 %t; mad.hi.cc.s32 %t, %a, %b, 1; add.u32 %r1, %t, 77;
        addc.u32 %r2, 0, 0; shl.b32 %r2, %r2, 31; xor.b32 %d, %t, %r2;
    """
    found = lanes(body, "u4", a=a, b=b)
    for x, y, word in zip(a.tolist(), b.tolist(), found.tolist(), strict=True):
        total = ((x * y >> 32) & FULL) + 1
        assert word == (total & FULL) ^ (total >> 32) << 31
