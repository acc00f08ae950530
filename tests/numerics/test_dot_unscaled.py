from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import exact_unscaled
import ml_dtypes
import numpy as np
import pytest
from assert_bits import assert_bits_equal, from_bits

from fp4ref.errors import InputError
from fp4ref.numerics.decoded_operands import decode_terms
from fp4ref.numerics.dot_unscaled import matmul_unscaled
from fp4ref.numerics.elements import ElementFormat

DATA = Path(__file__).parent.parent / "data"
NAN, INF, MINUS_INF = 0x7FFFFFFF, 0x7F800000, 0xFF800000
F16, BF16, E4M3, E5M2 = (ElementFormat(x) for x in ("f16", "bf16", "e4m3", "e5m2"))


def load_generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "make_mmasim_unscaled_golden", DATA / "make_mmasim_unscaled_golden.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


GENERATOR = load_generator()
CASES = [f"{i}/{d}" for i in GENERATOR.INSTRUCTIONS for d in GENERATOR.DISTRIBUTIONS]


@pytest.fixture(scope="module")
def golden() -> dict[str, dict[str, np.ndarray]]:
    with np.load(DATA / "mmasim_unscaled_golden.npz") as stored:
        return {case: {x: stored[f"{case}/{x}"] for x in "abcd"} for case in CASES}


def formats_of(case: str) -> tuple[str, str]:
    return GENERATOR.INSTRUCTIONS[case.split("/")[0]]


def product_bits(case: dict[str, np.ndarray], a_format: str, b_format: str):
    d = matmul_unscaled(
        case["a"],
        case["b"],
        case["c"].view(np.float32),
        a_format=ElementFormat(a_format),
        b_format=ElementFormat(b_format),
    )
    return d.view(np.uint32)


# --- formats ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("element", "dtype"),
    [
        (F16, np.float16),
        (BF16, ml_dtypes.bfloat16),
        (E4M3, ml_dtypes.float8_e4m3fn),
        (E5M2, ml_dtypes.float8_e5m2),
        (ElementFormat.E2M3, ml_dtypes.float6_e2m3fn),
        (ElementFormat.E3M2, ml_dtypes.float6_e3m2fn),
        (ElementFormat.E2M1, ml_dtypes.float4_e2m1fn),
    ],
)
def test_every_code_has_the_value_that_ml_dtypes_gives_it(element, dtype):
    kind = np.uint16 if element.bits == 16 else np.uint8
    codes = np.arange(1 << element.bits).astype(kind)
    terms = decode_terms(codes, element.element)
    with np.errstate(invalid="ignore"):
        want = codes.view(dtype).astype(np.float64)
    finite = np.isfinite(want)
    exponent = terms.exponent - terms.mantissa_bits
    got = np.ldexp(terms.significand.astype(np.float64), np.where(finite, exponent, 0))
    np.testing.assert_array_equal(got[finite], want[finite])
    assert (terms.exponent[~finite] == 1 << 12).all()
    assert (terms.exponent[finite] < 200).all()
    signs = np.where(np.isnan(want), 0, np.sign(want))
    np.testing.assert_array_equal(terms.significand[~finite], signs[~finite])


# --- against mmasim -----------------------------------------------------------


@pytest.mark.parametrize("case", CASES)
def test_every_output_equals_mmasim(golden, case):
    stored = golden[case]
    assert_bits_equal(product_bits(stored, *formats_of(case)), stored["d"])


def test_the_golden_set_holds_27_thousand_outputs_and_every_kind_of_result(golden):
    d = np.concatenate([stored["d"].ravel() for stored in golden.values()])
    magnitude = d & 0x7FFFFFFF
    assert d.size >= 27_000
    assert (d == NAN).sum() > 1_000
    assert (magnitude == INF).sum() > 1_000
    assert (magnitude == 0).sum() > 500
    assert ((magnitude > 0) & (magnitude < 0x00800000)).sum() > 100
    assert not (d == 0x80000000).any()


@pytest.mark.outside
def test_mmasim_itself_agrees_on_fresh_inputs():
    pytest.importorskip("mmasim", reason="needs mmasim 2.1.1 and torch (not installed)")
    for seed in range(7, 12):
        for instruction, _, case in GENERATOR.cases(seed):
            actual = product_bits(case, *formats_of(instruction))
            assert_bits_equal(actual, GENERATOR.mmasim_product(instruction, case))


# --- against the exact rational model -----------------------------------------


def sample(golden, case: str, count: int):
    """Yield (arguments of mma, expected bits) for some outputs of a case."""
    stored = golden[case]
    a, b, c, d = (stored[x].tolist() for x in "abcd")
    m, n = stored["d"].shape
    for at in range(0, m * n, -(-m * n // count)):
        i, j = divmod(at, n)
        yield (a[i], b[j], c[i][j], *formats_of(case)), d[i][j]


@pytest.mark.parametrize("case", CASES)
def test_the_exact_model_agrees_with_mmasim(golden, case):
    for arguments, expected in sample(golden, case, 64):
        assert exact_unscaled.mma(*arguments) == expected


WRONG_MODELS = {
    "24 fraction bits": {"fraction_bits": 24},
    "26 fraction bits": {"fraction_bits": 26},
    "13 fraction bits, as on Hopper": {"fraction_bits": 13},
    "no truncation before the sum": {"truncate": False},
    "truncation toward minus infinity": {"floor": True},
    "round to nearest even": {"rounding": "rne"},
    "exponent of the product": {"exponent_of_product": True},
    "a zero product keeps its exponent": {"zero_keeps_exponent": True},
    "a zero term counts as 2^-126": {"e_zero": -126},
    "C is added after the products": {"c_joins_last": True},
}


def mismatches(golden, cases: list[str], count: int, **wrong) -> int:
    return sum(
        exact_unscaled.mma(*arguments, **wrong) != expected
        for case in cases
        for arguments, expected in sample(golden, case, count)
    )


@pytest.mark.rotating(5)
@pytest.mark.parametrize("wrong", WRONG_MODELS.values(), ids=WRONG_MODELS)
def test_the_golden_set_refuses_a_wrong_model(golden, wrong):
    assert mismatches(golden, CASES, 40, **wrong) > 0


@pytest.mark.parametrize("instruction", ["f16", "bf16", "e4m3", "e5m2"])
@pytest.mark.parametrize("wrong", [24, 26, "rne"])
def test_each_wide_format_refuses_the_nearest_wrong_models(golden, instruction, wrong):
    options = {"rounding": "rne"} if wrong == "rne" else {"fraction_bits": wrong}
    cases = [c for c in CASES if c.split("/")[0] == instruction]
    assert mismatches(golden, cases, 100, **options) > 0


@pytest.mark.parametrize("element", [F16, E4M3])
def test_a_long_k_is_a_chain_of_instructions(element):
    rng = np.random.default_rng(3)
    step = element.k_step
    a = rng.integers(0, 1 << element.bits, (5, 3 * step))
    b = rng.integers(0, 1 << element.bits, (6, 3 * step))
    c = rng.standard_normal((5, 6)).astype(np.float32)
    d = matmul_unscaled(a, b, c, a_format=element, b_format=element)
    for first in range(0, 3 * step, step):
        part = slice(first, first + step)
        c = matmul_unscaled(
            a[:, part], b[:, part], c, a_format=element, b_format=element
        )
    assert_bits_equal(d, c)


# --- named cases of the instruction -------------------------------------------

ONE, HALF, TINY = 0x3C00, 0x3800, 0x0001  # f16 codes; TINY is 2^-24
F16_INF, F16_NAN = 0x7C00, 0x7E00


def one_output(pairs, c=0, element=F16) -> int:
    """Return the bits of a 1x1 product; `pairs` are two codes each, `c` is bits."""
    a, b = np.zeros((2, 1, element.k_step), np.uint16)
    for k, (code_a, code_b) in enumerate(pairs):
        a[0, k], b[0, k] = code_a, code_b
    d = matmul_unscaled(a, b, from_bits(c)[:, None], a_format=element, b_format=element)
    return int(d.view(np.uint32)[0, 0])


def bits(value: float) -> int:
    return int(np.float32(value).view(np.uint32))


def test_the_result_is_truncated_and_not_rounded_to_nearest():
    # 2^24 + 1.5 lies nearer to 2^24 + 2.
    pairs = [(ONE, ONE), (HALF, ONE)]
    assert one_output(pairs, bits(2.0**24)) == bits(2.0**24)
    assert one_output([(ONE, ONE)] * 2, bits(2.0**24)) == bits(2.0**24 + 2)


def test_each_term_is_truncated_25_bits_below_the_largest_exponent():
    # Two products of 2^-k stay at 2^-25 and are lost below.
    for power, kept in ((-25, 2), (-26, 0)):
        a = (power // 2 + 15) << 10
        b = (power - power // 2 + 15) << 10
        one = bits(1.0)
        pairs = [(a, b)] * 2 + [(ONE, ONE ^ 0x8000)]
        assert one_output(pairs, one) == bits(kept * 2.0**power)


def test_products_of_subnormals_are_kept():
    assert one_output([(TINY, TINY)] * 3) == bits(3 * 2.0**-48)


def test_a_zero_product_does_not_push_small_terms_out():
    # 0 * 2^15 would stand at exponent 1, above C = 2^-100.
    assert one_output([(0, 0x7800)], bits(2.0**-100)) == bits(2.0**-100)


@pytest.mark.parametrize(("power", "count", "want"), [(-158, 2, 1), (-159, 4, 0)])
def test_a_zero_term_stands_at_2_to_the_minus_133(power, count, want):
    # 25 bits below it is 2^-158. 255 * 2^-157 is 2^-157 short of a result of 2^-149.
    large = ((-70 + 127) << 7 | 0x7F, (-80 + 127) << 7)
    small = ((power + 80 + 127) << 7, (-80 + 127) << 7)
    assert one_output([large, *[small] * count], 0, BF16) == want


def test_the_result_is_never_minus_zero():
    assert one_output([(0x8000, ONE)] * 16, 0x80000000) == 0
    assert one_output([(TINY, TINY ^ 0x8000)], 1) == bits(-(2.0**-48))
    assert one_output([], 0x80000001) == 0x80000001


@pytest.mark.parametrize(
    ("pairs", "c", "want"),
    [
        ([(F16_NAN, 0)], 0, NAN),
        ([(F16_INF, 0)], 0, NAN),
        ([(0, F16_INF | 0x8000)], 0, NAN),
        ([(F16_INF, ONE), (F16_INF, ONE | 0x8000)], 0, NAN),
        ([(F16_INF, F16_INF)], MINUS_INF, NAN),
        ([(ONE, ONE)], 0x7F800001, NAN),
        ([(F16_INF, TINY)], 0, INF),
        ([(F16_INF, TINY | 0x8000)], bits(3e38), MINUS_INF),
        ([(F16_INF, F16_INF)], INF, INF),
        ([(ONE, ONE)], MINUS_INF, MINUS_INF),
    ],
)
def test_inf_and_nan(pairs, c, want):
    assert one_output(pairs, c) == want


def test_overflow_gives_infinity():
    assert one_output([(0x7F7F, 0x7F7F)], 0, BF16) == INF
    assert one_output([(0x7F7F, 0xFF7F)], 0, BF16) == MINUS_INF
    assert one_output([(0x7F00, 0x3F80)] * 2, 0, BF16) == INF


def test_e4m3_has_one_nan_and_no_infinity():
    assert one_output([(0x7E, 0x38)], 0, E4M3) == bits(448)
    assert one_output([(0x7F, 0x00)], 0, E4M3) == NAN
    assert one_output([(0xFF, 0x38)], 0, E4M3) == NAN


def test_the_default_c_is_plus_zero():
    a = np.full((1, 16), 0x8000)
    d = matmul_unscaled(a, a, a_format=F16, b_format=F16)
    assert int(d.view(np.uint32)[0, 0]) == 0


# --- one body, any number of threads ------------------------------------------


@pytest.mark.parametrize("element", [F16, BF16, E4M3])
def test_the_body_gives_the_same_bits_without_the_compiler(monkeypatch, element):
    from fp4ref.numerics import dot_unscaled_jit

    rng = np.random.default_rng(6)
    k = 2 * element.k_step
    a = rng.integers(0, 1 << element.bits, (4, k))
    b = rng.integers(0, 1 << element.bits, (5, k))
    c = rng.integers(0, 1 << 32, (4, 5), dtype=np.uint32)
    kwargs = {"a_format": element, "b_format": element}
    compiled = matmul_unscaled(a, b, c.view(np.float32), **kwargs)
    for name, function in vars(dot_unscaled_jit).copy().items():
        if hasattr(function, "py_func"):
            monkeypatch.setattr(dot_unscaled_jit, name, function.py_func)
    interpreted = matmul_unscaled(a, b, c.view(np.float32), **kwargs)
    assert_bits_equal(interpreted, compiled)


def test_the_bits_do_not_depend_on_the_number_of_threads(monkeypatch):
    pytest.importorskip("numba")
    from fp4ref.numerics import compiled
    from fp4ref.numerics import dot_unscaled_jit as jit

    rng = np.random.default_rng(8)
    a = decode_terms(rng.integers(0, 0x7C00, (67, 64)), F16.element)
    b = decode_terms(rng.integers(0, 0x7C00, (45, 64)), F16.element)
    serial = np.zeros((67, 45), np.uint32)
    jit.chain_rows(0, 67, a, b, 16, serial)
    for threads in (1, 2, 3):
        monkeypatch.setattr(compiled, "THREADS", threads)
        d = np.zeros((67, 45), np.uint32)
        compiled.in_pieces(jit.chain_rows, 67, 4, a, b, 16, d)
        assert_bits_equal(d, serial)


def test_a_large_product_equals_its_blocks():
    rng = np.random.default_rng(9)
    a = rng.integers(0, 0x7C00, (160, 256))
    b = rng.integers(0, 0x7C00, (144, 256))  # together they go to threads
    whole = matmul_unscaled(a, b, a_format=F16, b_format=F16)
    for rows in (slice(0, 64), slice(64, 160)):
        part = matmul_unscaled(a[rows], b, a_format=F16, b_format=F16)
        assert_bits_equal(part, whole[rows])


def test_importing_the_module_does_not_import_numba():
    code = "import sys, fp4ref.numerics.dot_unscaled; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# --- refusals -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("a", "b", "c", "formats", "says"),
    [
        ((2, 16), (2, 16), None, (F16, BF16), "A is F16 and B BF16"),
        ((2, 32), (2, 32), None, (F16, E4M3), "A is F16 and B E4M3"),
        ((2, 24), (2, 24), None, (F16, F16), "positive multiple of 16"),
        ((2, 16), (2, 16), None, (E4M3, E5M2), "multiple of 32"),
        ((2, 0), (2, 0), None, (F16, F16), "shape"),
        ((32,), (2, 32), None, (F16, F16), "shape"),
        ((2, 16), (2, 32), None, (F16, F16), "K is 16 in A and 32 in B"),
        ((2, 16), (3, 16), (3, 2), (F16, F16), r"C has shape \(3, 2\); need \(2, 3\)"),
    ],
)
def test_refused_operands(a, b, c, formats, says):
    arrays = np.zeros(a, np.uint16), np.zeros(b, np.uint16)
    c_array = None if c is None else np.zeros(c, np.float32)
    with pytest.raises(InputError, match=says):
        matmul_unscaled(*arrays, c_array, a_format=formats[0], b_format=formats[1])


def test_codes_that_do_not_fit_the_format_are_refused():
    wide = np.full((1, 32), 0x100)
    with pytest.raises(InputError, match="E4M3 codes are 0 to 255"):
        matmul_unscaled(wide, wide, a_format=E4M3, b_format=E4M3)
    with pytest.raises(InputError, match="codes as integers"):
        matmul_unscaled(wide / 2, wide, a_format=E4M3, b_format=E4M3)
