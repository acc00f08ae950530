"""dot_lanes: the bits of the definition, whatever the operands; a loose bound shows."""

from __future__ import annotations

import numpy as np
import pytest
from assert_bits import assert_bits_equal

from fp4ref.numerics import dot_lanes
from fp4ref.numerics.decoded_operands import Terms, decode_terms
from fp4ref.numerics.dot_lanes import multiply_lanes
from fp4ref.numerics.dot_unscaled import multiply_terms
from fp4ref.numerics.elements import ElementFormat

pytest.importorskip("numba")
from fp4ref.numerics import dot_lanes_jit

F16, BF16 = ElementFormat.F16, ElementFormat.BF16
SHAPE = 35, 67


def numbers(kind: str, rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Numbers that differ in how wide they are."""
    if kind == "integers":
        return rng.integers(-3, 4, shape).astype(np.float32)
    x = rng.standard_normal(shape)
    if kind == "wide":
        x *= np.exp2(rng.integers(-30, 31, shape))
    return x.astype(np.float32)


def operand(element: ElementFormat, kind: str, rows: int, seed: list[int]) -> Terms:
    """Terms of one side."""
    rng = np.random.default_rng(seed)
    shape = rows, 5 * element.k_step
    if kind == "raw":
        codes = rng.integers(0, 1 << element.bits, shape)
    else:
        codes = element.element.encode(numbers(kind, rng, shape))
    return decode_terms(codes.astype(element.element.code_dtype), element.element)


def accumulator(kind: str, rng: np.random.Generator) -> np.ndarray | None:
    """C: none, numbers of all sizes, or any bits."""
    if kind == "zero":
        return None
    if kind == "raw":
        return rng.integers(0, 1 << 32, SHAPE, dtype=np.uint32).view(np.float32)
    wide = np.ldexp(rng.standard_normal(SHAPE), rng.integers(-140, 120, SHAPE))
    return wide.astype(np.float32)


@pytest.mark.parametrize("start", ["zero", "wide", "raw"])
@pytest.mark.parametrize("kind", ["integers", "numbers", "wide", "raw"])
@pytest.mark.parametrize("element", ElementFormat)
def test_a_chain_has_the_bits_of_the_definition(element, kind, start, rotating_seed):
    a, b = (
        operand(element, kind, rows, [rotating_seed, side])
        for side, rows in enumerate(SHAPE)
    )
    c = accumulator(start, np.random.default_rng(rotating_seed))
    found = multiply_lanes(a, b, element.k_step, c)
    assert_bits_equal(found, multiply_terms(a, b, element.k_step, c))


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("kind", ["numbers", "wide", "raw"])
@pytest.mark.parametrize("element", ElementFormat)
def test_hundreds_of_millions_of_outputs(element, kind, seed):
    rng = np.random.default_rng([seed, element.bits])
    a, b = (
        Terms(*(np.tile(x, (12, 1)) for x in side[:2]), side.mantissa_bits)
        for side in (operand(element, kind, 30, [seed, i]) for i in range(2))
    )
    c = np.ldexp(rng.standard_normal((360, 360)), rng.integers(-30, 30, (360, 360)))
    found = multiply_lanes(a, b, element.k_step, c.astype(np.float32))
    want = multiply_terms(a, b, element.k_step, c.astype(np.float32))
    assert_bits_equal(found, want)


def test_one_odd_column_and_one_odd_row_are_left_to_the_definition() -> None:
    codes = np.full((4, 32), 0x3C00)
    codes[1, 3], codes[2, 5] = 0x7C00, 0x7E00
    a = decode_terms(codes, F16.element)
    assert dot_lanes.lanes(a).plain.tolist() == [True, False, False, True]
    found = multiply_lanes(a, a, 16, None)
    assert_bits_equal(found, multiply_terms(a, a, 16, None))
    assert found[0, 0] == 32
    assert np.isnan(found[2]).all()


def differs(a: Terms, b: Terms, c: np.ndarray | None = None) -> bool:
    """Whether the loops, run as Python, give other bits than the definition."""
    with pytest.MonkeyPatch.context() as patch, np.errstate(all="ignore"):
        for name, function in vars(dot_lanes_jit).copy().items():
            if hasattr(function, "py_func"):
                patch.setattr(dot_lanes_jit, name, function.py_func)
        found = multiply_lanes(a, b, 16, c)
    want = multiply_terms(a, b, 16, c)
    return bool((found.view(np.uint32) != want.view(np.uint32)).any())


def of_codes(code: int, element: ElementFormat = F16) -> Terms:
    return decode_terms(np.full((1, 16), code), element.element)


def test_elements_too_large_for_float32_go_red(monkeypatch) -> None:
    """Products of 3.9 times 2^127 are Inf in float32, and 16 of them 0 as int32."""
    sides = of_codes(0x5FFF, BF16), of_codes(0x5F7F, BF16)
    assert_bits_equal(
        multiply_lanes(*sides, 16, None), np.array([[np.inf]], np.float32)
    )
    monkeypatch.setattr(dot_lanes_jit, "NEAR", 64)
    assert multiply_lanes(*sides, 16, None)[0, 0] != np.inf


def test_too_many_terms_at_a_time_go_red(monkeypatch) -> None:
    largest = of_codes(0x3FFF)  # just below 2: sixteen products are just below 2^31
    c = np.full((1, 1), -1, np.float32)
    assert not differs(largest, largest, c)
    monkeypatch.setattr(dot_lanes_jit, "FRACTION_BITS", 26)
    assert differs(largest, largest, c)


def test_a_small_c_alone_taken_for_plain_goes_red(monkeypatch) -> None:
    nothing, c = of_codes(0), np.full((1, 1), 2.0**-130, np.float32)
    assert not differs(nothing, nothing, c)
    monkeypatch.setattr(dot_lanes_jit, "LEAST", 140)
    assert differs(nothing, nothing, c)
