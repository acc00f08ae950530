"""``set``, ``testp`` and ``min.xorsign.abs`` give what Python's numbers say."""

from __future__ import annotations

import math
import operator

import numpy as np
import pytest
from assembler import complaint, needs_ptxas
from on_lanes import HEADER, SCRATCH, lanes

EDGES = [0, 1, 0x3C00, 0x3C01, 0x7BFF, 0x7C00, 0x7E00, 0x03FF, 0x0400]
HALVES = np.array([*EDGES, *(x | 0x8000 for x in EDGES), *range(14)], np.uint16)
COMPARE = {
    **{"eq": operator.eq, "ne": operator.ne, "lt": operator.lt},
    **{"le": operator.le, "gt": operator.gt, "ge": operator.ge},
}


def as_float(kind: str, bits: int) -> float:
    if kind == "f16":
        return float(np.array(bits, np.uint16).view(np.float16))
    return float(np.array(bits << 16, np.uint32).view(np.float32))


def holds(name: str, x: float, y: float) -> bool:
    nan = math.isnan(x) or math.isnan(y)
    if name in ("num", "nan"):
        return nan == (name == "nan")
    if nan:
        return name.endswith("u")
    return bool(COMPARE[name[:2]](x, y))


def pairs() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    return rng.permutation(HALVES), rng.permutation(HALVES)


@pytest.mark.parametrize("kind", ["f16", "bf16"])
@pytest.mark.parametrize("name", ["eq", "neu", "lt", "geu", "num", "nan"])
def test_set_of_halves_is_one_where_it_holds(kind: str, name: str) -> None:
    a, b = pairs()
    one = {"f16": 0x3C00, "bf16": 0x3F80}[kind]
    found = lanes(f"set.{name}.{kind}.{kind} %d, %a, %b;", "u2", a=a, b=b)
    want = [
        one * holds(name, as_float(kind, x), as_float(kind, y))
        for x, y in zip(a.tolist(), b.tolist(), strict=True)
    ]
    assert found.tolist() == want
    found = lanes(f"set.{name}.u32.{kind} %d, %a, %b;", "u4", a=a, b=b)
    assert found.tolist() == [0xFFFFFFFF * bool(x) for x in want]


@pytest.mark.parametrize(("to", "true"), [("f16x2", 0x3C00), ("u32", 0xFFFF)])
def test_halves_of_a_pair_are_compared_alone(to: str, true: int) -> None:
    a, b = (np.concatenate([x, x[::-1]]).view(np.uint32) for x in pairs())
    found = lanes(f"set.eq.{to}.f16x2 %d, %a, %b;", "u4", a=a, b=b)
    for x, y, d in zip(a.tolist(), b.tolist(), found.tolist(), strict=True):
        for shift in (0, 16):
            halves = (as_float("f16", v >> shift & 0xFFFF) for v in (x, y))
            assert d >> shift & 0xFFFF == true * holds("eq", *halves)


def test_ftz_makes_subnormal_halves_equal_to_zero() -> None:
    a, b = np.full(32, 1, np.uint16), np.full(32, 0x8000, np.uint16)
    assert not lanes("set.eq.u32.f16 %d, %a, %b;", "u4", a=a, b=b).any()
    assert lanes("set.eq.ftz.u32.f16 %d, %a, %b;", "u4", a=a, b=b).all()


@pytest.mark.parametrize(
    ("opcode", "dtype", "result", "true"),
    [
        ("set.lt.u32.s32", np.int32, "u4", 0xFFFFFFFF),
        ("set.lt.f32.u64", np.uint64, "f4", 1.0),
        ("set.lt.s32.f64", np.float64, "i4", -1),
        ("set.lt.f32.f32", np.float32, "f4", 1.0),
    ],
)
def test_set_compares_in_the_type_of_its_sources(
    opcode: str, dtype: type, result: str, true: float
) -> None:
    rng = np.random.default_rng(4)
    bits = rng.integers(0, 256, (2, 32 * np.dtype(dtype).itemsize), np.uint8)
    a, b = (each.view(dtype) for each in bits)
    found = lanes(f"{opcode} %d, %a, %b;", result, a=a, b=b)
    want = [x < y for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    assert found.tolist() == [true if each else 0 for each in want]
    assert 0 < sum(want) < 32


def test_set_combines_with_a_predicate() -> None:
    a = np.arange(32, dtype=np.int32)
    body = "setp.gt.s32 %p1, %a, 9; set.lt.xor.u32.s32 %d, %a, 20, %p1;"
    found = lanes(body, "u4", a=a)
    assert found.tolist() == [0xFFFFFFFF * ((x < 20) ^ (x > 9)) for x in range(32)]


CLASSES = {
    "finite": lambda x, tiny: math.isfinite(x),
    "infinite": lambda x, tiny: math.isinf(x),
    "number": lambda x, tiny: not math.isnan(x),
    "notanumber": lambda x, tiny: math.isnan(x),
    "normal": lambda x, tiny: math.isfinite(x) and (x == 0 or abs(x) >= tiny),
    "subnormal": lambda x, tiny: 0 < abs(x) < tiny,
}


@pytest.mark.parametrize("what", CLASSES)
def test_testp_says_of_which_class_a_float_is(what: str) -> None:
    for kind, dtype, tiny in (
        ("f32", np.float32, 2.0**-126),
        ("f64", np.float64, 2.0**-1022),
    ):
        values = [0.0, -0.0, 1.0, math.inf, -math.inf, math.nan]
        values += [tiny, -tiny, tiny / 2, -tiny * 0.75, tiny * 1.5]
        a = np.array((values * 3)[:32], dtype)
        body = f"testp.{what}.{kind} %p1, %a; selp.u32 %d, 1, 0, %p1;"
        want = [int(CLASSES[what](x, tiny)) for x in a.tolist()]
        assert lanes(body, "u4", a=a).tolist() == want


@pytest.mark.parametrize("name", ["min", "max"])
def test_xorsign_takes_a_magnitude_and_the_sign_of_the_product(name: str) -> None:
    rng = np.random.default_rng(5)
    a, b = rng.standard_normal((2, 32)).astype(np.float32)
    a[:4], b[2:6] = [0, -0.0, math.nan, math.inf], [1, math.nan, -math.inf, -0.0]
    found = lanes(f"{name}.xorsign.abs.f32 %d, %a, %b;", "f4", a=a, b=b)
    choose = {"min": min, "max": max}[name]
    for x, y, d in zip(a.tolist(), b.tolist(), found.tolist(), strict=True):
        numbers = [abs(v) for v in (x, y) if not math.isnan(v)]
        sign = math.copysign(1, x) * math.copysign(1, y)
        assert abs(d) == choose(numbers)
        assert math.copysign(1, d) == sign
    kept = lanes(f"{name}.NaN.xorsign.abs.f32 %d, %a, %b;", "f4", a=a, b=b)
    assert np.array_equal(np.isnan(kept), np.isnan(a) | np.isnan(b))


@pytest.mark.outside
@needs_ptxas
def test_the_forms_are_ptx(tmp_path) -> None:
    lines = [
        *(f"set.lt.{to}.f16 %r1, %h1, %h2;" for to in ("u32", "s32")),
        *(f"set.lt.{to}.bf16 %h3, %h1, %h2;" for to in ("u16", "s16", "bf16")),
        *(f"set.geu.and.{to}.bf16x2 %r1, %r2, %r3, %p1;" for to in ("bf16x2", "u32")),
        *(f"set.lt.ftz.{to}.f16x2 %r1, %r2, %r3;" for to in ("f16x2", "s32")),
        *(f"set.lt.{to}.s64 %r1, %rd1, %rd2;" for to in ("u32", "f32")),
        *(f"set.eq.{to}.b16 %h3, %h1, %h2;" for to in ("f16", "bf16")),
        *(f"set.hi.{to}.u64 %h3, %rd1, %rd2;" for to in ("f16", "bf16")),
        "set.lt.ftz.f16.f32 %h1, %r1, %r2; set.num.f16.f64 %h1, %rd1, %rd2;",
        "set.lt.bf16.f32 %h1, %r1, %r2; set.num.bf16.f64 %h1, %rd1, %rd2;",
        *(f"testp.{what}.f64 %p1, %rd1;" for what in CLASSES),
        "min.ftz.NaN.xorsign.abs.f32 %r1, %r2, %r3; isspacep.const %p1, %rd1;",
    ]
    text = f"{HEADER}.entry k() {{ {SCRATCH}\n" + "\n".join(lines) + "\nret; }\n"
    assert complaint(text, tmp_path, "sm_100a") == ""
