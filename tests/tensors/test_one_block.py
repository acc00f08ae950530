"""one_block: the bytes of `quantize` in every way, and what was on the way."""

from __future__ import annotations

import warnings

import ml_dtypes
import numpy as np
import pytest

from fp4ref.tensors.one_block import WAYS, look, whole_scale
from fp4ref.tensors.quantize import automatic_global_scale, quantize
from fp4ref.tensors.recipes import RECIPES

MIDDLES = np.array([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5, 6], np.float32)


def test_every_recipe_has_a_way_and_a_name() -> None:
    assert {way.recipe.name for way in WAYS.values()} == set(RECIPES)
    assert {"cutlass", "cutlass UE8M0", "cutlass MXFP4", "mx_even"} <= set(WAYS)
    assert not any("MXFP8" in name for name in WAYS)


@pytest.mark.parametrize("name", [n for n, w in WAYS.items() if w.recipe.rows == 1])
def test_its_bytes_are_those_of_the_tensor(name: str) -> None:
    """A block of a larger tensor, alone, with the tensor's global scale."""
    way, rng = WAYS[name], np.random.default_rng(0)
    unit = np.float32(2) ** rng.integers(-3, 4, (24, 1)) * np.float32(1.375)
    x = (rng.choice(MIDDLES, (24, 32)) * unit).astype(np.float32)
    for dtype in (np.float32, ml_dtypes.bfloat16):
        tensor = x.astype(dtype)
        largest = float(np.abs(tensor).max())
        scale = whole_scale(way, largest=largest)
        two_levels = scale.largest > 0
        if two_levels:
            assert scale == automatic_global_scale(
                tensor.astype(np.float32), way.recipe
            )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            given = "auto" if two_levels else None
            options = (way.format, way.recipe.name, given, way.scale_format)
            q = quantize(tensor, *options)
        for row in range(24):
            seen = look(tensor[row], way, scale)
            assert (seen.codes == q.codes[row]).all()
            assert (seen.scales == q.scales[row]).all()
            assert np.array_equal(seen.values, q.dequantize()[row])


def test_a_square_of_equal_rows_has_the_bytes_of_one() -> None:
    x = np.random.default_rng(1).standard_normal((1, 32), np.float32)
    way = WAYS["transformer_engine_2d"]
    seen = look(x[0], way, whole_scale(way, largest=float(np.abs(x).max())))
    q = quantize(x.repeat(16, 0), recipe="transformer_engine_2d", global_scale="auto")
    assert (seen.codes == q.codes).all()
    assert (seen.scales == q.scales).all()


def test_ties_cuts_and_the_scale_before_rounding() -> None:
    """B10: 4.6875 over 1.875 is a tie where the library divides."""
    x = np.zeros(16, np.float32)
    x[:3] = 11.25, 4.6875, -1.0
    divided = look(x, WAYS["modelopt"], whole_scale(WAYS["modelopt"], largest=None))
    assert divided.wanted.tolist() == [1.875]
    assert divided.scaled[1] == 2.5
    assert np.flatnonzero(divided.ties).tolist() == [1]
    assert not divided.cut.any()
    plain = look(x, WAYS["cutlass"], whole_scale(WAYS["cutlass"], largest=None))
    assert np.flatnonzero(plain.cut).tolist() == [0]  # by an ulp
    assert not plain.ties.any()
    floor = look(
        x * np.float32(0.65), WAYS["mx_floor"], whole_scale(WAYS["mx_floor"], largest=1)
    )
    assert floor.cut[0]  # 7.3 over 1
    four = WAYS["four_over_six_mse_448_tie_six"]
    spread = np.full(16, 5, np.float32)
    spread[0] = 6
    seen = look(spread, four, whole_scale(four, largest=None))
    assert seen.wanted.tolist() == [1.5]
    assert seen.scaled[0] == 4
    assert seen.error == pytest.approx(np.sqrt(15 * 0.5**2 / (36 + 15 * 25)))


def test_zeros_lose_nothing() -> None:
    for way in WAYS.values():
        seen = look(np.zeros(16, np.float32), way, whole_scale(way, largest=None))
        assert seen.error == 0
        assert (seen.values == 0).all()
