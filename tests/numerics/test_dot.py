"""dot: block-scaled products against MMA-Sim, an exact model and by hand."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import exact_dot
import numpy as np
import pytest
from assert_bits import assert_bits_equal, from_bits
from dot_operands import LEGAL, UE4M3, UE8M0, random_operands

from fp4ref.numerics.dot import matmul_block_scaled, mma_block_scaled
from fp4ref.numerics.elements import ScaleFormat
from fp4ref.numerics.formats import unpack_e2m1
from fp4ref.numerics.quantize import (
    amax_global_scale,
    dequantize_blocks,
    quantize_blocks,
)

DATA = Path(__file__).parent.parent / "data"
NAN, INF = 0x7FFFFFFF, 0x7F800000

HALF, ONE, THREE, MINUS_HALF = 0x1, 0x2, 0x5, 0x9  # E2M1 codes


def load_generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "make_mmasim_golden", DATA / "make_mmasim_golden.py"
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
    with np.load(DATA / "mmasim_golden.npz") as stored:
        return {
            case: {x: stored[f"{case}/{x}"] for x in ("a", "b", "sfa", "sfb", "c", "d")}
            for case in CASES
        }


def formats_of(case: str) -> tuple[ScaleFormat, int]:
    scale_format, vec_size = GENERATOR.INSTRUCTIONS[case.split("/")[0]]
    return ScaleFormat(scale_format), vec_size


def product_bits(case: dict[str, np.ndarray], scale_format, vec_size) -> np.ndarray:
    d = mma_block_scaled(
        case["a"],
        case["b"],
        case["sfa"],
        case["sfb"],
        case["c"].view(np.float32),
        scale_format=scale_format,
        vec_size=vec_size,
    )
    return d.view(np.uint32)


# --- against mmasim -----------------------------------------------------------


@pytest.mark.parametrize("case", CASES)
def test_every_output_equals_mmasim(golden, case):
    stored = golden[case]
    codes = {x: unpack_e2m1(stored[x]) for x in ("a", "b")}
    actual = product_bits({**stored, **codes}, *formats_of(case))
    assert_bits_equal(actual, stored["d"])


def test_the_golden_set_holds_60_thousand_outputs_and_every_kind_of_result(golden):
    d = np.concatenate([stored["d"].ravel() for stored in golden.values()])
    magnitude = d & 0x7FFFFFFF
    assert d.size >= 60_000
    assert (d == NAN).sum() > 1_000
    assert (magnitude == INF).sum() > 1_000
    assert (magnitude == 0).sum() > 500
    assert ((magnitude > 0) & (magnitude < 0x00800000)).sum() > 100
    assert not (d == 0x80000000).any()


@pytest.mark.outside
def test_mmasim_itself_agrees_on_fresh_inputs():
    pytest.importorskip("mmasim", reason="needs mmasim 2.1.1 and torch (not installed)")
    for instruction, distribution, case in GENERATOR.cases(seed=7):
        expected = GENERATOR.mmasim_product(instruction, case)
        actual = product_bits(case, *formats_of(f"{instruction}/{distribution}"))
        assert_bits_equal(actual, expected)


# --- against the exact rational model -----------------------------------------


def sample(golden, case: str, count: int):
    """Yield (arguments of mma_k64, expected bits) for some outputs of a case."""
    stored = golden[case]
    scale_format, vec_size = formats_of(case)
    a, b = unpack_e2m1(stored["a"]).tolist(), unpack_e2m1(stored["b"]).tolist()
    sfa, sfb = stored["sfa"].tolist(), stored["sfb"].tolist()
    c, d = stored["c"].tolist(), stored["d"].tolist()
    m, n = stored["d"].shape
    for at in range(0, m * n, -(-m * n // count)):
        i, j = divmod(at, n)
        arguments = (a[i], b[j], sfa[i], sfb[j], c[i][j], scale_format.value, vec_size)
        yield arguments, d[i][j]


@pytest.mark.parametrize("case", CASES)
def test_the_exact_model_agrees_with_mmasim(golden, case):
    for arguments, expected in sample(golden, case, 300):
        assert exact_dot.mma_k64(*arguments) == expected


WRONG_MODELS = {
    "34 fraction bits": {"fraction_bits": 34},
    "36 fraction bits": {"fraction_bits": 36},
    "25 fraction bits, as for the FP8 kinds": {"fraction_bits": 25},
    "no truncation before the sum": {"truncate": False},
    "round to nearest even": {"rounding": "rne"},
    "exponent of the product": {"exponent_of_product": True},
    "a cancelled group counts as zero": {"cancelled_group_is_zero": True},
    "a zero group keeps its exponent": {"zero_group_keeps_exponent": True},
    "C is added after the products": {"c_joins_last": True},
}


def mismatches(golden, case: str, count: int, **wrong) -> int:
    return sum(
        exact_dot.mma_k64(*arguments, **wrong) != expected
        for arguments, expected in sample(golden, case, count)
    )


@pytest.mark.rotating(4)
@pytest.mark.parametrize("wrong", WRONG_MODELS.values(), ids=WRONG_MODELS)
def test_the_golden_set_refuses_a_wrong_model(golden, wrong):
    total = sum(mismatches(golden, case, 150, **wrong) for case in CASES)
    assert total > 0


def test_the_golden_set_refuses_groups_of_32_with_block_32(golden):
    cases = [case for case in CASES if "block32" in case]
    assert sum(mismatches(golden, case, 300, group=32) for case in cases) > 0


@pytest.mark.parametrize("case", CASES)
def test_the_golden_set_refuses_a_float32_matmul(golden, case):
    stored, (scale_format, _) = golden[case], formats_of(case)
    a, b = (
        dequantize_blocks(
            unpack_e2m1(stored[x]), stored["sf" + x], scale_format=scale_format
        )
        for x in ("a", "b")
    )
    with np.errstate(all="ignore"):
        d = a @ b.T + stored["c"].view(np.float32)
    different = d.view(np.uint32) != stored["d"]
    both_nan = np.isnan(d) & np.isnan(stored["d"].view(np.float32))
    assert (different & ~both_nan).sum() > 0


@pytest.mark.parametrize(
    ("scale_format", "vec_size", "k"),
    [
        (f, v, k)
        for f, v in LEGAL
        for k in range(v, 193, v)
        if k in (v, 48, 96) or k > 150
    ],
)
def test_a_long_k_is_a_chain_of_instructions(scale_format, vec_size, k):
    rng = np.random.default_rng(k)
    operands = random_operands(rng, 5, 6, k, scale_format, vec_size)
    c = rng.standard_normal((5, 6)).astype(np.float32)
    expected = exact_dot.matmul(
        *(x.tolist() for x in operands),
        c.view(np.uint32).tolist(),
        scale_format.value,
        vec_size,
    )
    d = matmul_block_scaled(*operands, c, scale_format=scale_format, vec_size=vec_size)
    assert d.view(np.uint32).tolist() == expected


def test_each_instruction_truncates_so_a_chain_is_not_one_long_sum():
    # C = 2^24; four instructions add 1.0 each, and each is lost.
    a = np.zeros((1, 256), np.uint8)
    a[0, ::64] = ONE
    b = np.full((1, 256), ONE, np.uint8)
    scales = np.full((1, 16), 0x38, np.uint8)
    c = np.array([[2.0**24]], np.float32)
    d = matmul_block_scaled(a, b, scales, scales, c, scale_format=UE4M3, vec_size=16)
    assert d.tolist() == [[16777216.0]]


# --- named cases of the instruction -------------------------------------------


def one_output(pairs, sfa, sfb, c=0.0, scale_format=UE4M3, vec_size=16) -> int:
    """Return the bits of a 1x1 product; `pairs` maps k to two codes."""
    a, b = np.zeros((2, 1, 64), np.uint8)
    for k, (code_a, code_b) in pairs.items():
        a[0, k], b[0, k] = code_a, code_b
    c_array = np.asarray(c)
    if c_array.dtype != np.float32:
        c_array = c_array.astype(np.float32)
    d = mma_block_scaled(
        a,
        b,
        np.array([sfa], np.uint8),
        np.array([sfb], np.uint8),
        c_array.reshape(1, 1),
        scale_format=scale_format,
        vec_size=vec_size,
    )
    return int(d.view(np.uint32)[0, 0])


def value(bits: int) -> float:
    return float(from_bits(bits)[0])


ONES = [0x38] * 4  # scale 1.0


def test_the_result_is_truncated_and_not_rounded_to_nearest():
    assert value(one_output({0: (THREE, ONE)}, ONES, ONES, 2.0**24)) == 16777218


def test_alignment_loses_small_groups_beside_large_ones_that_cancel():
    pairs = {0: (HALF, HALF), 16: (MINUS_HALF, HALF), 32: (HALF, HALF)}
    small = [0x78, 0x78, 0x01, 0x38]
    assert one_output(pairs, small, small) == 0
    larger = [0x78, 0x78, 0x08, 0x38]
    assert value(one_output(pairs, larger, larger)) == 2.0**-14


@pytest.mark.parametrize(
    ("scale_format", "nan"), [(UE4M3, 0x7F), (UE4M3, 0xFF), (UE8M0, 0xFF)]
)
@pytest.mark.parametrize("group", range(4))
def test_a_nan_scale_makes_nan_even_of_a_zero_block(scale_format, nan, group):
    good = [0x38] * 4
    bad = [0x38] * 4
    bad[group] = nan
    for sfa, sfb in ((bad, good), (good, bad)):
        assert one_output({}, sfa, sfb, np.inf, scale_format) == NAN
        assert one_output({0: (ONE, ONE)}, sfa, sfb, 1.0, scale_format) == NAN


def test_a_nan_in_c_makes_the_canonical_nan():
    for bits in (0x7F800001, 0x7FC00000, 0xFFC00000, 0xFFFFFFFF):
        assert one_output({0: (ONE, ONE)}, ONES, ONES, from_bits(bits)) == NAN


def test_an_infinite_c_passes():
    big = {0: (0xF, 7)}  # -36 times 448^2
    scales = [0x7E] * 4
    assert one_output(big, scales, scales, np.inf) == INF
    assert one_output(big, scales, scales, -np.inf) == INF | 1 << 31


def test_a_result_of_2_to_128_is_infinite_and_one_just_below_is_not():
    top = [0xFE] * 4  # 2^127
    assert one_output({0: (4, ONE)}, top, [0x7F] * 4, 0.0, UE8M0) == INF
    assert one_output({0: (12, ONE)}, top, [0x7F] * 4, 0.0, UE8M0) == INF | 1 << 31
    flt_max = from_bits(0x7F7FFFFF)
    one = [0x7F] * 4
    assert one_output({0: (ONE, ONE)}, one, one, flt_max, UE8M0) == 0x7F7FFFFF
    unit = [0x7F + 104] * 4  # the last place of FLT_MAX
    assert one_output({0: (ONE, ONE)}, unit, one, flt_max, UE8M0) == INF


def test_the_result_is_never_minus_zero():
    minus_zero = from_bits(0x80000000)
    assert one_output({}, ONES, ONES, minus_zero) == 0
    assert one_output({0: (8, ONE)}, ONES, ONES, minus_zero) == 0
    assert one_output({0: (ONE, ONE), 1: (ONE, 0xA)}, ONES, ONES, minus_zero) == 0
    below = [0] * 4  # 2^-127: the product -2^-254 truncates to zero
    assert one_output({0: (ONE, 0xA)}, below, below, 0.0, UE8M0) == 0
    lowest = [0x7F - 22] * 4  # -2^-150, half the smallest subnormal
    assert one_output({0: (HALF, 0xA)}, below, lowest, 0.0, UE8M0) == 0


def test_subnormals_are_kept_in_c_in_d_and_in_the_scales():
    tiny = from_bits(0x00000003)
    assert one_output({}, ONES, ONES, tiny) == 3
    smallest = [0x01] * 4  # 2^-9
    assert value(one_output({0: (HALF, ONE)}, smallest, ONES)) == 2.0**-10
    down = [0x00] * 4  # 2^-127
    assert one_output({0: (ONE, ONE)}, down, [0x7F] * 4, 0.0, UE8M0) == 0x00400000
    lowest = [0x7F - 22] * 4
    assert one_output({0: (ONE, ONE)}, down, lowest, 0.0, UE8M0) == 1
    assert one_output({0: (HALF, ONE)}, down, lowest, 0.0, UE8M0) == 0


def test_bit_seven_of_a_ue4m3_scale_is_ignored():
    signed = [0xB8] * 4
    assert value(one_output({0: (ONE, ONE)}, signed, ONES)) == 1.0


def test_ue8m0_code_zero_does_not_zero_its_block():
    a = np.full((1, 64), ONE, np.uint8)
    low, high = np.zeros((1, 2), np.uint8), np.full((1, 2), 0xFE, np.uint8)
    d = mma_block_scaled(a, a, low, high, scale_format=UE8M0, vec_size=32)
    assert d.tolist() == [[64.0]]


def test_a_scale_byte_is_read_in_the_declared_format():
    byte = [0x38] * 4
    assert value(one_output({0: (ONE, ONE)}, byte, byte)) == 1.0
    assert one_output({0: (ONE, ONE)}, byte, byte, 0.0, UE8M0) == float_bits(2.0**-142)
    nan_or_one = [0x7F] * 4
    assert one_output({0: (ONE, ONE)}, nan_or_one, byte) == NAN
    assert value(one_output({0: (ONE, ONE)}, nan_or_one, nan_or_one, 0.0, UE8M0)) == 1


def float_bits(x: float) -> int:
    return int(np.float32(x).view(np.uint32))


def test_a_large_zero_group_does_not_push_small_terms_out():
    top, small = 0x7F + 60, 0x7F - 10
    pairs = {16: (ONE, ONE)}
    scales = [top, small, small, small]
    assert value(one_output(pairs, scales, scales, 0.0, UE8M0)) == 2.0**-20


def test_the_default_c_is_plus_zero():
    a = np.full((2, 64), ONE, np.uint8)
    scales = np.full((2, 4), 0x38, np.uint8)
    kwargs = {"scale_format": UE4M3, "vec_size": 16}
    zero = np.zeros((2, 2), np.float32)
    without = mma_block_scaled(a, a, scales, scales, **kwargs)
    assert without.tolist() == [[64.0, 64.0], [64.0, 64.0]]
    assert_bits_equal(without, mma_block_scaled(a, a, scales, scales, zero, **kwargs))


def test_split_k_adds_scaled_sums():
    a = np.full((128, 128), ONE, np.uint8)
    scales = np.tile(np.arange(0x38, 0x71, 8, dtype=np.uint8), (128, 1))
    kwargs = {"scale_format": UE4M3, "vec_size": 16}
    whole = matmul_block_scaled(a, a, scales, scales, **kwargs)
    assert (whole == 349520).all()
    first = matmul_block_scaled(
        a[:, :64], a[:, :64], scales[:, :4], scales[:, :4], **kwargs
    )
    second = matmul_block_scaled(
        a[:, 64:], a[:, 64:], scales[:, 4:], scales[:, 4:], first, **kwargs
    )
    assert_bits_equal(second, whole)


def test_quantised_normal_data_is_exact_so_it_proves_nothing_about_the_model():
    rng = np.random.default_rng(5)
    x = rng.standard_normal((2, 32, 256)).astype(np.float32)
    codes, scales = quantize_blocks(
        x, norm=amax_global_scale(x), scale_format=UE4M3, vec_size=16
    )
    exact = dequantize_blocks(codes, scales, scale_format=UE4M3, dtype="float64")
    d = matmul_block_scaled(
        codes[0], codes[1], scales[0], scales[1], scale_format=UE4M3, vec_size=16
    )
    assert_bits_equal(d, (exact[0] @ exact[1].T).astype(np.float32))
