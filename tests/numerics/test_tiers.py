"""tiers: the bits of the integer model, whatever computed them; a loose bound shows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from assert_bits import assert_bits_equal
from tier_cases import DISTRIBUTIONS, block_scaled, of_integers

from fp4ref.numerics import (
    compiled,
    dot,
    factors,
    float32_slabs,
    groups,
    instruction,
    one_step,
    slab_plan,
    tiers,
)
from fp4ref.numerics.decode_factors import decode_factors
from fp4ref.numerics.dot_unscaled import multiply_terms
from fp4ref.numerics.elements import ElementFormat, ScaleFormat
from fp4ref.numerics.integer_models import BlockScaledModel, TermsModel
from fp4ref.numerics.tier_report import Tier

K = 1024


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_a_million_outputs_are_those_of_the_integer_model(name, rotating_seed):
    """128,000 outputs of each of eight distributions, and nine sizes of tile."""
    model = block_scaled(name, rotating_seed, 320, 400, K)
    d, _ = tiers.multiply(model)
    assert_bits_equal(d, of_integers(model))


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(50))
@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_a_hundred_million_outputs_are_those_of_the_integer_model(name, seed):
    model = block_scaled(name, seed, 500, 500, K)
    d, _ = tiers.multiply(model)
    assert_bits_equal(d, of_integers(model))


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_numpy_alone_gives_the_same_bits(name, monkeypatch):
    model = block_scaled(name, 2, 40, 50, 512)
    d, _ = tiers.multiply(model)
    monkeypatch.setattr(compiled, "AVAILABLE", False)
    alone, _ = tiers.multiply(block_scaled(name, 2, 40, 50, 512))
    assert_bits_equal(alone, d)


def shares(name: str, k: int = K) -> dict[Tier, float]:
    return dict(tiers.multiply(block_scaled(name, 1, 256, 256, k))[1].shares)


def test_each_distribution_takes_the_tier_that_its_bounds_allow():
    assert shares("normal")[Tier.FLOAT32] == 1
    assert 0 < shares("positive", 4 * K)[Tier.FLOAT32] < 1
    assert shares("log_normal")[Tier.FLOAT64] > 0.9
    assert shares("any_scale")[Tier.FLOAT64] > 0.9
    assert 0 < shares("any_scale")[Tier.INTEGER] < 0.1
    assert shares("below_the_kept_bits")[Tier.INTEGER] > 0.1


def test_the_report_says_for_each_tile_which_tier_and_why():
    _, report = tiers.multiply(block_scaled("outliers", 1, 2100, 64, 512))
    assert [(t.rows, t.columns) for t in report.tiles] == [
        (range(0, 2048), range(0, 64)),
        (range(2048, 2100), range(0, 64)),
    ]
    assert sum(t.macs[tier] for t in report.tiles for tier in Tier) == 2100 * 64 * 512
    text = str(report)
    assert "D[2048:2100, 0:64]" in text
    assert "some rows or columns of finer units" in text


def differences(name: str) -> int:
    model = block_scaled(name, 3, 128, 128, K)
    d, _ = tiers.multiply(model)
    return int((d.view(np.uint32) != of_integers(model).view(np.uint32)).sum())


def test_a_bound_of_25_bits_goes_red(monkeypatch):
    assert differences("edge_of_24_bits") == 0
    monkeypatch.setattr(slab_plan, "FLOAT32_BITS", 25)
    assert differences("edge_of_24_bits") > 0


def with_signs(negative_a: np.ndarray) -> BlockScaledModel:
    """Products of one size: sums of 512 are 0.74 of 2^24 unless signs differ."""
    model = block_scaled("edge_of_24_bits", 3, 64, 128, K)
    return replace(model, a=model.a | (8 * negative_a).astype(np.uint8))


def wrong_outputs(model: BlockScaledModel) -> int:
    d, _ = tiers.multiply(model)
    return int((d.view(np.uint32) != of_integers(model).view(np.uint32)).sum())


def test_sums_that_turn_back_inside_a_slab_are_seen(monkeypatch):
    """D is 0.74 of 2^24 before and after the second slab, and 1.1 in its middle."""
    model = with_signs(np.arange(K) >= 3 * K // 4)
    assert wrong_outputs(model) == 0
    monkeypatch.setattr(float32_slabs, "RUNNING_BITS", float32_slabs.RUNNING_BITS + 1)
    assert wrong_outputs(model) > 0


@pytest.mark.parametrize("numba", [True, False])
def test_rows_of_large_sums_are_computed_again(monkeypatch, numba):
    rng = np.random.default_rng(6)
    signs = rng.random((64, K)) < 0.5
    signs[5] = False
    model = with_signs(signs)
    monkeypatch.setattr(compiled, "AVAILABLE", numba)
    d, report = tiers.multiply(model)
    assert "some rows of larger sums" in str(report)
    assert_bits_equal(d, of_integers(model))
    monkeypatch.setattr(float32_slabs, "RUNNING_BITS", 28)
    assert set(np.nonzero(tiers.multiply(model)[0] != d)[0]) == {5}


def test_a_corner_of_finer_rows_and_columns_is_computed_again(monkeypatch):
    """Row 0 and column 0 have units of a quarter; only D[0, 0] is beyond one slab."""
    rng = np.random.default_rng(1)
    sides = []
    for rows in (64, 128):
        codes = np.where(rng.random((rows, K)) < 0.05, 6, 7).astype(np.uint8)
        codes[0, rng.random(K) < 0.05] = 1
        sides.append((codes, np.full((rows, K // 16), 0x3D, np.uint8)))
    (a, sfa), (b, sfb) = sides
    model = BlockScaledModel(a, b, sfa, sfb, ScaleFormat.UE4M3, 16)
    d, report = tiers.multiply(model)
    assert f"in slabs of {K}" in str(report)
    assert sum(report.tiles[0].macs.values()) == d.size * K
    assert_bits_equal(d, of_integers(model))
    monkeypatch.setattr(tiers._Product, "_rests", lambda *_: iter(()))
    found, _ = tiers.multiply(model)
    assert np.argwhere(found != d).tolist() == [[0, 0]]


def test_a_corner_of_scattered_rows_and_columns_is_put_in_its_place():
    """Rows and columns of a quarter of the unit, apart from each other."""
    rng = np.random.default_rng(2)
    sides = []
    for rows, fine in ((64, [3, 17, 40]), (128, [5, 60, 99])):
        codes = np.where(rng.random((rows, K)) < 0.05, 6, 7).astype(np.uint8)
        scattered = codes[fine]
        scattered[rng.random(scattered.shape) < 0.05] = 1
        codes[fine] = scattered
        sides.append((codes, np.full((rows, K // 16), 0x3D, np.uint8)))
    (a, sfa), (b, sfb) = sides
    model = BlockScaledModel(a, b, sfa, sfb, ScaleFormat.UE4M3, 16)
    d, report = tiers.multiply(model)
    assert "some rows or columns of finer units" in str(report)
    assert_bits_equal(d, of_integers(model))


@pytest.mark.parametrize("numba", [True, False])
def test_blocks_of_32_go_through_float32_slabs(monkeypatch, numba):
    """MXFP4 of ordinary width: two groups of 16 share a scale."""
    rng = np.random.default_rng(32)
    a, b = rng.integers(0, 16, (2, 40, 512), np.uint8)
    sfa, sfb = rng.integers(124, 128, (2, 40, 512 // 32)).astype(np.uint8)
    model = BlockScaledModel(a, b, sfa, sfb, ScaleFormat.UE8M0, 32)
    monkeypatch.setattr(compiled, "AVAILABLE", numba and compiled.AVAILABLE)
    d, report = tiers.multiply(model)
    assert report.shares[Tier.FLOAT32] > 0.9
    monkeypatch.undo()
    assert_bits_equal(d, of_integers(model))


def test_rows_around_one_that_is_too_wide_are_put_in_their_places():
    """Row 5 and column 9 are wider than float32; the others take its slabs."""
    rng = np.random.default_rng(33)
    a, b = rng.integers(0, 16, (2, 40, 512), np.uint8)
    sfa, sfb = rng.integers(124, 128, (2, 40, 512 // 32)).astype(np.uint8)
    sfa[5, ::2] = sfb[9, ::2] = 10
    model = BlockScaledModel(a, b, sfa, sfb, ScaleFormat.UE8M0, 32)
    d, report = tiers.multiply(model)
    assert "wider than float32" in str(report)
    assert report.shares[Tier.FLOAT32] > 0.9
    assert_bits_equal(d, of_integers(model))


def edge(scale_format: ScaleFormat, groups_of_a: list, groups_of_b: list) -> float:
    """Return how far one output is from the model's; a group is codes and a scale."""
    sides = []
    for side in (groups_of_a, groups_of_b):
        codes = np.zeros((1, 4, 16), np.uint8)
        for g, (some, _) in enumerate(side):
            codes[0, g, : len(some)] = some
        scales = np.array([[scale for _, scale in side]], np.uint8)
        sides.append((codes.reshape(1, 64), scales))
    (a, sfa), (b, sfb) = sides
    model = BlockScaledModel(a, b, sfa, sfb, scale_format, 16)
    d, _ = tiers.multiply(model)
    return float(d[0, 0]) - float(of_integers(model)[0, 0])


def one_bit_below() -> float:
    """2^16 less a term of 2^-20, the bit below the last kept one."""
    one, half, nothing = ([2], 0x78), ([1], 0x01), ([], 0x01)
    minus = ([9], 0x01)
    return edge(
        ScaleFormat.UE4M3, [one, nothing, nothing, half], [one, nothing, nothing, minus]
    )


def three_lost_bits() -> float:
    """1 less three terms that lose 255/256 of the last kept bit."""
    one, a, b = ([2], 127), ([7, 7, 4, 1], 107), ([15, 14, 11, 11], 106)
    return edge(ScaleFormat.UE8M0, [one, a, a, a], [one, b, b, b])


needs_loops = pytest.mark.skipif(
    not compiled.AVAILABLE,
    reason="sums of groups are compiled; of arrays a test below has the margin",
)


@needs_loops
def test_a_kept_bit_too_many_goes_red(monkeypatch):
    assert one_bit_below() == 0
    monkeypatch.setattr(groups, "KEPT_BITS", 36)
    assert one_bit_below() != 0


@needs_loops
def test_a_margin_of_half_goes_red(monkeypatch):
    assert three_lost_bits() == 0
    monkeypatch.setattr(groups, "MARGIN", groups.MARGIN / 2)
    assert three_lost_bits() != 0


@pytest.mark.parametrize("group", range(4))
def test_a_group_of_zeros_in_a_doubtful_sum_has_no_exponent(group):
    """1 and 2^-20 less what is lost: beside its scale of 2^26, 2^-20 would be, too."""
    a = [([2], 127), ([2], 117), ([7, 7, 4, 1], 107)]
    b = [([2], 127), ([2], 117), ([15, 14, 11, 11], 106)]
    for side in (a, b):
        side.insert(group, ([], 140))
    assert edge(ScaleFormat.UE8M0, a, b) == 0


@needs_loops
def test_sums_of_zero_are_no_doubt_and_leave_the_model_as_it_says_itself():
    ones = np.full((8, 128), 2, np.uint8)
    scales = np.full((8, 8), 0x38, np.uint8)
    b = ones.copy()
    b[:, ::2] |= 8  # minus one
    model = BlockScaledModel(ones, b, scales, scales, ScaleFormat.UE4M3, 16)
    at, c, before = np.arange(8), np.zeros((8, 8), np.float32), repr(model)
    assert model.add_groups(at, at, slice(0, 2), c) == 0
    assert not c.any()
    assert repr(model) == before


def test_a_doubt_margin_of_nothing_goes_red_without_numba(monkeypatch):
    monkeypatch.setattr(compiled, "AVAILABLE", False)
    assert differences("below_the_kept_bits") == 0
    monkeypatch.setattr(one_step, "MARGIN", 0)
    assert differences("below_the_kept_bits") > 0


def test_terms_that_lose_bits_taken_for_whole_go_red(monkeypatch):
    monkeypatch.setattr(compiled, "AVAILABLE", False)
    monkeypatch.setattr(tiers, "is_lossless", lambda *_: True)
    assert differences("below_the_kept_bits") > 0


ELEMENTS = [e for e in ElementFormat if e.value not in ("f32", "tf32")]


@pytest.mark.parametrize("kind", ["integers", "numbers", "raw"])
@pytest.mark.parametrize("element", ELEMENTS)
def test_the_kinds_without_scales_have_the_bits_of_theirs(element, kind):
    rng = np.random.default_rng(element.bits)
    codes = rng.integers(0, 1 << element.bits, (2, 40, 128))
    if kind != "raw":
        chosen = rng.integers(-3, 4, (2, 40, 128)).astype(np.float32)
        if kind == "numbers":
            chosen = rng.standard_normal((2, 40, 128)).astype(np.float32)
        codes = element.element.encode(chosen)
    a, b = codes.astype(element.element.code_dtype)
    model = TermsModel(a, b, element, element)
    d, report = tiers.multiply(model)
    assert_bits_equal(d, of_integers_of_terms(model))
    if kind == "integers":
        assert report.shares[Tier.FLOAT32] == 1


def of_integers_of_terms(model: TermsModel) -> np.ndarray:
    return multiply_terms(*model._terms, model.step, None)


@pytest.mark.parametrize("middle", [127, 60, 200, None])
@pytest.mark.parametrize("element", [e for e in ELEMENTS if e.bits <= 8])
def test_mx_formats_have_the_bits_of_theirs(element, middle):
    rng = np.random.default_rng([element.bits, middle or 0])
    a, b = rng.integers(0, 1 << element.bits, (2, 40, 128), np.uint8)
    low, high = (0, 256) if middle is None else (middle - 3, middle + 4)
    sfa, sfb = rng.integers(low, high, (2, 40, 4)).astype(np.uint8)
    model = TermsModel(a, b, element, element, sfa, sfb)
    d, _ = tiers.multiply(model)
    assert_bits_equal(d, of_integers_of_terms(model))


@pytest.mark.parametrize("spread", [1, 20, 120])
@pytest.mark.parametrize("vec_size", [16, 32])
def test_ue8m0_scales_of_any_width_have_the_bits_of_the_model(vec_size, spread):
    rng = np.random.default_rng([vec_size, spread])
    a, b = rng.integers(0, 16, (2, 40, 512), np.uint8)
    middle = rng.integers(20 if spread < 120 else 127, 128)
    low, high = max(middle - spread, 0), min(middle + spread, 254)
    sfa, sfb = rng.integers(low, high, (2, 40, 512 // vec_size)).astype(np.uint8)
    model = BlockScaledModel(a, b, sfa, sfb, ScaleFormat.UE8M0, vec_size)
    d, _ = tiers.multiply(model)
    assert_bits_equal(d, of_integers(model))


@pytest.mark.parametrize("element", ELEMENTS)
def test_factors_without_numba_are_the_compiled_ones(element, monkeypatch):
    rng = np.random.default_rng(element.bits)
    codes = rng.integers(0, 1 << element.bits, (40, 128))
    codes = codes.astype(element.element.code_dtype)
    found = decode_factors(codes, element.element, element.k_step)
    monkeypatch.setattr(compiled, "AVAILABLE", False)
    alone = decode_factors(codes, element.element, element.k_step)
    for name, one, other in zip(factors.Factors._fields, found, alone, strict=True):
        if name == "square":
            np.testing.assert_allclose(one, other, rtol=1e-12)
        else:
            np.testing.assert_array_equal(one, other, err_msg=name)


@pytest.mark.parametrize("start", ["zero", "integers", "wide", "raw"])
@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_one_instruction_has_the_bits_of_the_integer_model(name, start):
    model = block_scaled(name, 5, 64, 96, 64)
    rng = np.random.default_rng(len(start))
    c = rng.integers(-9, 10, (64, 96)).astype(np.float32)
    if start == "wide":
        c = np.ldexp(rng.standard_normal((64, 96)), rng.integers(-40, 40, (64, 96)))
    bits = rng.integers(0, 1 << 32, (64, 96), dtype=np.uint32)
    c = bits.view(np.float32) if start == "raw" else c.astype(np.float32)
    operands = (model.a, model.b, model.sfa, model.sfb)
    kind = {"scale_format": ScaleFormat.UE4M3, "vec_size": 16}
    before = None if start == "zero" else c
    found = instruction.mma_block_scaled(*operands, before, **kind)
    assert_bits_equal(found, dot.mma_block_scaled(*operands, before, **kind))
