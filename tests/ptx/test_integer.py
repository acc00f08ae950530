"""Integer instructions against Python's integers, on random patterns and corners."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from on_lanes import bits32, bits64, kernel, lanes, machine

from fp4ref.errors import NotModelled
from fp4ref.ptx import Program, PtxError, parse
from fp4ref.ptx.run.loader import load
from fp4ref.ptx.run.registry import translate


def signed(value: int, bits: int) -> int:
    value %= 1 << bits
    return value - (1 << bits) if value >> (bits - 1) else value


def truncated_division(a: int, b: int) -> int:
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def operand(value: int, kind: str) -> int:
    bits = int(kind[1:])
    return signed(value, bits) if kind[0] == "s" else value % (1 << bits)


BINARY: dict[str, Callable[[int, int, int], int]] = {
    "add": lambda a, b, n: a + b,
    "sub": lambda a, b, n: a - b,
    "mul.lo": lambda a, b, n: a * b,
    "mul.hi": lambda a, b, n: a * b >> n,
    "min": lambda a, b, n: min(a, b),
    "max": lambda a, b, n: max(a, b),
    "and": lambda a, b, n: a & b,
    "or": lambda a, b, n: a | b,
    "xor": lambda a, b, n: a ^ b,
    "div": lambda a, b, n: -1 if b == 0 else truncated_division(a, b),
    "rem": lambda a, b, n: -1 if b == 0 else a - b * truncated_division(a, b),
}
ARITHMETIC = ("add", "sub", "mul.lo", "mul.hi", "min", "max", "div", "rem")
CASES = [(name, kind) for name in ARITHMETIC for kind in
         ("s16", "u16", "s32", "u32", "s64", "u64")] + [
    (name, kind) for name in ("and", "or", "xor") for kind in ("b16", "b32", "b64")
]  # fmt: skip


def patterns(kind: str, seed: int) -> np.ndarray:
    bits = int(kind[1:])
    if bits == 64:
        return bits64(seed)
    return bits32(seed).astype(f"u{bits // 8}")


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_binary_operations_wrap(name: str, kind: str) -> None:
    a, b = patterns(kind, 1), patterns(kind, 2)
    bits = int(kind[1:])
    d = lanes(f"{name}.{kind} %d, %a, %b;", f"u{bits // 8}", a=a, b=b)
    want = [
        BINARY[name](operand(int(x), kind), operand(int(y), kind), bits) % (1 << bits)
        for x, y in zip(a, b, strict=True)
    ]
    assert d.tolist() == want


@pytest.mark.parametrize("kind", ["s16", "u16", "s32", "u32"])
def test_wide_products_keep_all_bits(kind: str) -> None:
    a, b = patterns(kind, 3), patterns(kind, 4)
    bits = 2 * int(kind[1:])
    c = bits64(5).astype(f"u{bits // 8}")
    body = f"mul.wide.{kind} %d, %a, %b;"
    d = lanes(body, f"u{bits // 8}", a=a, b=b)
    e = lanes(f"mad.wide.{kind} %d, %a, %b, %c;", f"u{bits // 8}", a=a, b=b, c=c)
    products = [
        operand(int(x), kind) * operand(int(y), kind) for x, y in zip(a, b, strict=True)
    ]
    assert d.tolist() == [p % (1 << bits) for p in products]
    assert e.tolist() == [
        (p + int(z)) % (1 << bits) for p, z in zip(products, c, strict=True)
    ]


@pytest.mark.parametrize("kind", ["s32", "u32", "s64", "u64"])
@pytest.mark.parametrize("part", ["lo", "hi"])
def test_mad_adds_one_half_of_the_product(part: str, kind: str) -> None:
    a, b, c = (patterns(kind, seed) for seed in (6, 7, 8))
    bits = int(kind[1:])
    d = lanes(f"mad.{part}.{kind} %d, %a, %b, %c;", f"u{bits // 8}", a=a, b=b, c=c)
    shift = bits if part == "hi" else 0
    want = [
        ((operand(int(x), kind) * operand(int(y), kind) >> shift) + int(z))
        % (1 << bits)
        for x, y, z in zip(a, b, c, strict=True)
    ]
    assert d.tolist() == want


SHIFTS = [("shl", kind) for kind in ("b16", "b32", "b64")] + [
    ("shr", kind) for kind in ("b16", "b32", "b64", "s16", "s32", "s64", "u32")
]


@pytest.mark.parametrize(("name", "kind"), SHIFTS)
def test_shifts_of_the_width_or_more_give_zero_or_the_sign(
    name: str, kind: str
) -> None:
    bits = int(kind[1:])
    a = patterns(kind, 9)
    rng = np.random.default_rng(1)
    b = rng.choice([0, 1, 7, 15, 16, 31, 32, 33, 63, 64, 65, 2**31, 2**32 - 1], 1024)
    d = lanes(f"{name}.{kind} %d, %a, %b;", f"u{bits // 8}", a=a, b=b.astype(np.uint32))
    want = []
    for x, by in zip(a, b, strict=True):
        value = operand(int(x), kind)
        by = min(int(by), 200)
        want.append((value << by if name == "shl" else value >> by) % (1 << bits))
    assert d.tolist() == want


@pytest.mark.parametrize("kind", ["s16", "u16", "s32", "u32", "s64", "u64"])
@pytest.mark.parametrize("name", ["div", "rem"])
def test_division_by_zero_gives_all_ones(name: str, kind: str) -> None:
    bits = int(kind[1:])
    a = patterns(kind, 13)
    zero = np.zeros_like(a)
    d = lanes(f"{name}.{kind} %d, %a, %b;", f"u{bits // 8}", a=a, b=zero)
    assert set(d.tolist()) == {(1 << bits) - 1}
    assert lanes(f"{name}.{kind} %d, %a, 0;", d.dtype.str, a=a).tolist() == d.tolist()


BEYOND = [256, 257, 288, 300, 0x8000, 0x80000000, 0x80000001, 0xFFFFFF00, 0xFFFFFFFF]
"""Positions and lengths outside 0..255, where PTX promises nothing."""


def taken(number: int, bits: int) -> int:
    """What is taken of a position or length: the low byte, or all for 64 bits."""
    return number & 0xFF if bits == 32 else number


def bfe(a: int, position: int, length: int, bits: int, is_signed: bool) -> int:
    """The loop of the PTX text, with the position and length that cards take."""
    position, length = taken(position, bits), taken(length, bits)
    top = min(position + length - 1, bits - 1)
    sign = a >> top & 1 if is_signed and length else 0
    result = 0
    for i in range(bits):
        inside = i < length and position + i < bits
        result |= (a >> (position + i) & 1 if inside else sign) << i
    return result


@pytest.mark.parametrize("kind", ["u32", "s32", "u64", "s64"])
def test_bfe_follows_the_loop_of_the_text(kind: str) -> None:
    bits = int(kind[1:])
    a = patterns(kind, 10)
    rng = np.random.default_rng(2)
    b, c = (rng.choice([0, 1, 5, 8, 31, 32, 33, 63, 64, 200, 255, *BEYOND], 1024)
            .astype(np.uint32) for _ in range(2))  # fmt: skip
    d = lanes(f"bfe.{kind} %d, %a, %b, %c;", f"u{bits // 8}", a=a, b=b, c=c)
    want = [
        bfe(int(x), int(p), int(n), bits, kind[0] == "s")
        for x, p, n in zip(a, b, c, strict=True)
    ]
    assert d.tolist() == want


@pytest.mark.parametrize("kind", ["b32", "b64"])
def test_bfi_follows_the_loop_of_the_text(kind: str) -> None:
    bits = int(kind[1:])
    a, b = patterns(kind, 11), patterns(kind, 12)
    rng = np.random.default_rng(3)
    c, e = (rng.choice([0, 1, 5, 8, 31, 32, 33, 64, 200, 255, *BEYOND], 1024)
            .astype(np.uint32) for _ in range(2))  # fmt: skip
    d = lanes(f"bfi.{kind} %d, %a, %b, %c, %e;", f"u{bits // 8}", a=a, b=b, c=c, e=e)
    for x, y, p, n, found in zip(a, b, c, e, d, strict=True):
        want, position, length = int(y), taken(int(p), bits), taken(int(n), bits)
        for i in range(min(length, bits)):
            if position + i < bits:
                want &= ~(1 << (position + i))
                want |= (int(x) >> i & 1) << (position + i)
        assert int(found) == want


def test_prmt_picks_bytes_and_signs() -> None:
    a, b, c = bits32(13), bits32(14), bits32(15)
    d = lanes("prmt.b32 %d, %a, %b, %c;", "u4", a=a, b=b, c=c)
    for x, y, codes, found in zip(a, b, c, d, strict=True):
        source = int(x) | int(y) << 32
        want = 0
        for i in range(4):
            code = int(codes) >> 4 * i & 15
            byte = source >> 8 * (code & 7) & 0xFF
            if code & 8:
                byte = 0xFF if byte & 0x80 else 0
            want |= byte << 8 * i
        assert int(found) == want


@pytest.mark.parametrize("mode", ["f4e", "b4e", "rc8", "ecl", "ecr", "rc16"])
def test_prmt_modes_are_refused_by_name(mode: str) -> None:
    with pytest.raises(NotModelled, match=f"prmt.b32.{mode}"):
        lanes(f"prmt.b32.{mode} %d, %a, %a, 0;", "u4", a=bits32(1))


@pytest.mark.parametrize("table", [0x00, 0xFF, 0xF0, 0xCC, 0xAA, 0x96, 0xE8, 0x1B])
def test_lop3_is_its_truth_table(table: int) -> None:
    a, b, c = bits32(16), bits32(17), bits32(18)
    d = lanes(f"lop3.b32 %d, %a, %b, %c, {table};", "u4", a=a, b=b, c=c)
    want = np.zeros_like(a)
    for i in range(32):
        x, y, z = (v >> np.uint32(i) & np.uint32(1) for v in (a, b, c))
        row = x * 4 + y * 2 + z
        want |= (np.uint32(table) >> row & np.uint32(1)) << np.uint32(i)
    np.testing.assert_array_equal(d, want)


@pytest.mark.parametrize("signs", ["uu", "us", "su", "ss"])
def test_dp4a_adds_products_of_bytes(signs: str) -> None:
    a, b, c = bits32(31), bits32(32), bits32(33)
    text = f"dp4a.{signs[0]}32.{signs[1]}32 %d, %a, %b, %c;"
    found = lanes(text, "u4", a=a, b=b, c=c)
    kinds = [{"s": np.int8, "u": np.uint8}[sign] for sign in signs]
    for x, y, z, result in zip(a, b, c, found, strict=True):
        one, other = (
            np.frombuffer(v.tobytes(), kind).tolist()
            for v, kind in zip((x, y), kinds, strict=True)
        )
        products = sum(i * j for i, j in zip(one, other, strict=True))
        assert int(result) == (int(z) + products) % (1 << 32)


@pytest.mark.parametrize(("way", "limit"), [(w, m) for w in "lr" for m in
                                            ("wrap", "clamp")])  # fmt: skip
def test_shf_shifts_a_pair(way: str, limit: str) -> None:
    a, b = bits32(19), bits32(20)
    c = np.random.default_rng(4).integers(0, 70, 1024).astype(np.uint32)
    d = lanes(f"shf.{way}.{limit}.b32 %d, %a, %b, %c;", "u4", a=a, b=b, c=c)
    for x, y, n, found in zip(a, b, c, d, strict=True):
        by = int(n) & 31 if limit == "wrap" else min(int(n), 32)
        both = int(y) << 32 | int(x)
        want = both << by >> 32 if way == "l" else both >> by
        assert int(found) == want & 0xFFFFFFFF


@pytest.mark.parametrize("kind", ["b32", "b64"])
def test_bit_counts(kind: str) -> None:
    bits = int(kind[1:])
    a = patterns(kind, 21)
    width = f"u{bits // 8}"
    assert lanes(f"popc.{kind} %d, %a;", "u4", a=a).tolist() == [
        int(x).bit_count() for x in a
    ]
    assert lanes(f"clz.{kind} %d, %a;", "u4", a=a).tolist() == [
        bits - int(x).bit_length() for x in a
    ]
    assert lanes(f"brev.{kind} %d, %a;", width, a=a).tolist() == [
        int(f"{int(x):0{bits}b}"[::-1], 2) for x in a
    ]


@pytest.mark.parametrize("kind", ["u32", "s32", "u64", "s64"])
def test_bit_find_by_its_definition(kind: str) -> None:
    """PTX's own words: the most significant 1, or 0 for a negative signed value."""
    bits = int(kind[1:])
    a = patterns(kind, 23)
    a[:3] = 0, 1, 2**bits - 1
    found, amount = (
        lanes(f"bfind{shift}.{kind} %d, %a;", "u4", a=a) for shift in ("", ".shiftamt")
    )
    for x, position, shift in zip(
        a.tolist(), found.tolist(), amount.tolist(), strict=True
    ):
        negative = kind[0] == "s" and x >> (bits - 1)
        wanted = [i for i in range(bits) if (x >> i & 1) != bool(negative)]
        assert position == (wanted[-1] if wanted else 0xFFFFFFFF)
        assert shift == (bits - 1 - wanted[-1] if wanted else 0xFFFFFFFF)


@pytest.mark.parametrize("kind", ["s16", "s32", "s64"])
def test_negation_magnitude_and_complement(kind: str) -> None:
    bits = int(kind[1:])
    a = patterns(kind, 22)
    width = f"u{bits // 8}"
    values = [operand(int(x), kind) for x in a]
    modulus = 1 << bits
    assert lanes(f"neg.{kind} %d, %a;", width, a=a).tolist() == [
        -v % modulus for v in values
    ]
    assert lanes(f"abs.{kind} %d, %a;", width, a=a).tolist() == [
        abs(v) % modulus for v in values
    ]
    assert lanes(f"not.b{bits} %d, %a;", width, a=a).tolist() == [
        ~v % modulus for v in values
    ]


REFUSED = [
    "add.sat.s32 %r1, %r2, %r3", "mad24.hi.sat.s32 %r1, %r2, "
    "%r3, %r4", "mad.hi.sat.s32 %r1, %r2, %r3, %r4",
    "vadd.u32.u32.u32 %r1, %r2, %r3",
]  # fmt: skip


@pytest.mark.parametrize("text", REFUSED)
def test_unknown_instructions_and_modifiers_are_refused(text: str) -> None:
    program = Program.of(parse(kernel(f"{text};")))
    context = load(machine(), program, b"", (32, 1, 1))
    opcode = text.split()[0].replace(".", "[.]")
    with pytest.raises(NotModelled, match=rf"{opcode} \(line \d+\): ptx-"):
        translate(context)


@pytest.mark.parametrize(
    "text",
    [
        "and.s32 %r1, %r2, %r3",
        "shl.s32 %r1, %r2, %r3",
        "popc.s32 %r1, %r2",
        "add.b32 %r1, %r2, %r3",
        "mul.wide.s64 %rd1, %rd2, %rd3",
    ],
)
def test_forms_that_ptx_has_not_are_errors_of_the_text(text: str) -> None:
    program = Program.of(parse(kernel(f"{text};")))
    context = load(machine(), program, b"", (32, 1, 1))
    opcode = text.split()[0]
    with pytest.raises(PtxError, match=rf"PTX line \d+: {opcode} is no form of"):
        translate(context)
