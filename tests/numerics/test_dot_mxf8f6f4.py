from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

import exact_unscaled
import numpy as np
import pytest
from assert_bits import assert_bits_equal, from_bits

from fp4ref.errors import InputError
from fp4ref.numerics import ElementFormat, matmul_mxf8f6f4, matmul_unscaled

DATA = Path(__file__).parent.parent / "data"
NAN, INF = 0x7FFFFFFF, 0x7F800000
E4M3, E5M2, E3M2, E2M3, E2M1 = (
    ElementFormat(x) for x in ("e4m3", "e5m2", "e3m2", "e2m3", "e2m1")
)
ONE = 127


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    """The script that made the file; it imports its neighbour by name."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(DATA))
        return importlib.import_module("make_mmasim_mxf8f6f4_golden")


@pytest.fixture(scope="module")
def golden(generator: ModuleType) -> dict[str, np.ndarray]:
    with np.load(DATA / "mmasim_mxf8f6f4_golden.npz") as stored:
        return {x: stored[x] for x in ("a", "b", "sfa", "sfb", "c", "d")}


def product_bits(case: dict[str, np.ndarray], formats: tuple[str, str]) -> np.ndarray:
    a_format, b_format = (ElementFormat(x) for x in formats)
    d = matmul_mxf8f6f4(
        case["a"],
        case["b"],
        case["sfa"],
        case["sfb"],
        case["c"].view(np.float32),
        a_format=a_format,
        b_format=b_format,
    )
    return d.view(np.uint32)


# --- against mmasim 2.1.1 ------------------------------------------------------


@pytest.mark.parametrize("pair", range(25))
def test_every_output_equals_mmasim(golden, generator, pair):
    for distribution in range(len(generator.DISTRIBUTIONS)):
        case = {x: array[pair, distribution] for x, array in golden.items()}
        assert_bits_equal(product_bits(case, generator.PAIRS[pair]), case["d"])


def test_the_golden_set_holds_28_thousand_outputs_and_every_kind_of_result(golden):
    d = golden["d"]
    magnitude = d & 0x7FFFFFFF
    assert d.size >= 28_000
    assert (d == NAN).sum() > 1_000
    assert (magnitude == INF).sum() > 1_000
    assert (magnitude == 0).sum() > 500
    assert ((magnitude > 0) & (magnitude < 0x00800000)).sum() > 500
    assert not (d == 0x80000000).any()


@pytest.mark.outside
def test_mmasim_itself_agrees_on_fresh_inputs(generator):
    pytest.importorskip("mmasim", reason="needs mmasim 2.1.1 and torch (not installed)")
    for seed in range(7, 12):
        for formats, case in generator.cases(seed):
            expected = generator.mmasim_product(formats, case)
            assert_bits_equal(product_bits(case, formats), expected)


# --- against the exact rational model -----------------------------------------


def sample(golden, generator, count: int):
    """Yield (arguments of exact_unscaled.mma, scale, expected bits)."""
    rng = np.random.default_rng(2)
    for pair, formats in enumerate(generator.PAIRS):
        for distribution in range(len(generator.DISTRIBUTIONS)):
            case = {x: array[pair, distribution] for x, array in golden.items()}
            for at in rng.integers(0, case["d"].size, count):
                i, j = divmod(int(at), case["d"].shape[1])
                codes = int(case["sfa"][i, 0]), int(case["sfb"][j, 0])
                scale = None if 255 in codes else sum(codes) - 2 * ONE
                a, b, c = (case[x].tolist() for x in "abc")
                yield (a[i], b[j], c[i][j], *formats), scale, int(case["d"][i, j])


def test_the_exact_model_agrees_with_mmasim(golden, generator):
    for arguments, scale, expected in sample(golden, generator, 12):
        assert exact_unscaled.mma(*arguments, scale=scale) == expected


WRONG_MODELS = {
    "24 fraction bits": {"fraction_bits": 24},
    "26 fraction bits": {"fraction_bits": 26},
    "35 fraction bits, as for NVFP4": {"fraction_bits": 35},
    "no truncation before the sum": {"truncate": False},
    "truncation toward minus infinity": {"floor": True},
    "round to nearest even": {"rounding": "rne"},
    "exponent of the product": {"exponent_of_product": True},
    "a zero product keeps its exponent": {"zero_keeps_exponent": True},
    "a zero term counts as 2^-126": {"e_zero": -126},
    "C is added after the products": {"c_joins_last": True},
}


@pytest.mark.parametrize("wrong", WRONG_MODELS.values(), ids=WRONG_MODELS)
def test_the_golden_set_refuses_a_wrong_model(golden, generator, wrong):
    assert any(
        exact_unscaled.mma(*arguments, scale=scale, **wrong) != expected
        for arguments, scale, expected in sample(golden, generator, 24)
    )


# --- named cases of the instruction -------------------------------------------


def one_output(pairs, scales=(ONE, ONE), c=0, formats=(E4M3, E4M3)) -> int:
    """Return the bits of a 1x1 product; `pairs` are two codes each, `c` is bits."""
    a, b = np.zeros((2, 1, 32), np.uint8)
    for k, (code_a, code_b) in enumerate(pairs):
        a[0, k], b[0, k] = code_a, code_b
    sfa, sfb = (np.array([[code]], np.uint8) for code in scales)
    d = matmul_mxf8f6f4(
        a,
        b,
        sfa,
        sfb,
        from_bits(c)[:, None],
        a_format=formats[0],
        b_format=formats[1],
    )
    return int(d.view(np.uint32)[0, 0])


def bits(value: float) -> int:
    return int(np.float32(value).view(np.uint32))


def test_a_scale_is_a_power_of_two():
    assert one_output([(0x38, 0x38)], (ONE + 3, ONE - 5)) == bits(2.0**-2)
    assert one_output([(0x38, 0x38)], (0, ONE)) == 0x00400000  # 2^-127
    assert one_output([(0x38, 0x38)], (254, ONE)) == bits(2.0**127)
    assert one_output([(0x38, 0x38)], (254, ONE + 1)) == INF


def test_a_scale_takes_part_in_the_alignment():
    # With their scales two products stand 25 or 26 bits below C and a product, which
    # cancel; without them none would be truncated.
    def code(exponent):
        return (exponent + 15) << 2

    for power, kept in ((-25, 2), (-26, 0)):
        small = code(-2), code(power + 20 + 2)
        pairs = [(code(10), code(10) | 0x80), small, small]
        d = one_output(pairs, (ONE - 8, ONE - 12), bits(1.0), (E5M2, E5M2))
        assert d == bits(kept * 2.0**power)


def test_a_nan_scale_makes_nan_of_zeros():
    assert one_output([], (255, ONE)) == NAN
    assert one_output([], (ONE, 255), INF) == NAN


def test_an_infinite_element_stays_infinite_under_the_smallest_scales():
    assert one_output([(0x7C, 0x01)], (0, 0), formats=(E5M2, E2M1)) == INF
    assert one_output([(0x7C, 0x00)], (0, 0), formats=(E5M2, E2M1)) == NAN


def test_scales_of_one_leave_the_mma_without_scales():
    rng = np.random.default_rng(4)
    formats = {"a_format": E5M2, "b_format": E3M2}
    a, b = rng.integers(0, 256, (7, 64)), rng.integers(0, 64, (5, 64))
    ones = np.full((7, 2), ONE, np.uint8)
    c = rng.standard_normal((7, 5)).astype(np.float32)
    d = matmul_mxf8f6f4(a, b, ones, ones[:5], c, **formats)
    assert_bits_equal(d, matmul_unscaled(a, b, c, **formats))


def test_a_long_k_is_a_chain_of_instructions():
    rng = np.random.default_rng(3)
    a, b = rng.integers(0, 64, (5, 96)), rng.integers(0, 16, (6, 96))
    sfa, sfb = (rng.integers(100, 150, (r, 3), dtype=np.uint8) for r in (5, 6))
    c = rng.standard_normal((5, 6)).astype(np.float32)
    formats = {"a_format": E2M3, "b_format": E2M1}
    d = matmul_mxf8f6f4(a, b, sfa, sfb, c, **formats)
    for g in range(3):
        part, one = slice(32 * g, 32 * g + 32), slice(g, g + 1)
        c = matmul_mxf8f6f4(
            a[:, part], b[:, part], sfa[:, one], sfb[:, one], c, **formats
        )
    assert_bits_equal(d, c)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"sfa": np.zeros((2, 2), np.uint8)}, r"mma sfa: shape .*; need \(2, 1\)"),
        ({"sfb": np.zeros((3, 1), np.int32)}, "mma sfb: dtype int32"),
        ({"a_format": ElementFormat.F16, "a": np.zeros((2, 32), np.uint16)}, "F16"),
        ({"b": np.zeros((3, 33), np.uint8)}, "multiple of 32"),
        ({"b": np.full((3, 32), 16, np.uint8)}, "E2M1 codes are 0 to 15"),
        ({"b": np.zeros((3, 64), np.uint8), "sfb": np.zeros((3, 2), np.uint8)}, "K is"),
        ({"c": np.zeros((2, 2), np.float32)}, "C has shape"),
        ({"a_format": "e4m3"}, "a_format"),
    ],
)
def test_refused_operands(change, says):
    given = {
        "a": np.zeros((2, 32), np.uint8),
        "b": np.zeros((3, 32), np.uint8),
        "sfa": np.zeros((2, 1), np.uint8),
        "sfb": np.zeros((3, 1), np.uint8),
        "a_format": E4M3,
        "b_format": E2M1,
    }
    with pytest.raises(InputError, match=says):
        matmul_mxf8f6f4(**given | change)
