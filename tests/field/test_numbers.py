"""Blocks as others quantise and pack them: B76, B77, B79, B84."""

from __future__ import annotations

import warnings
from fractions import Fraction

import numpy as np
import pytest

import fp4ref
from fp4ref.errors import InputError
from fp4ref.numerics import (
    ScaleFormat,
    decode_ue4m3,
    dequantize_blocks,
    quantize_blocks,
)
from fp4ref.tensors.recipes import RECIPES

SCALES = np.arange(1, 127, dtype=np.uint8)


@pytest.mark.parametrize(
    ("random", "want"), [(0, [1, 2, 0, -4]), (0xFF, [1.5, 3, 0.5, -6])]
)
def test_b76_stochastic_rounding_goes_by_the_carry(
    random: int, want: list[float]
) -> None:
    x = np.zeros((1, 16), np.float32)
    x[0, :5] = 1.25, 2.5, 0.25, -5, 6  # 6 makes the scale 1
    for recipe in ("cutlass", "transformer_engine"):
        bits = np.full(x.shape, random, np.uint8)
        q = fp4ref.quantize(x, recipe=recipe, random_bits=bits)
        assert q.scales.tolist() == [[0x38]]
        assert q.dequantize()[0, :4].tolist() == want


FOUR_OVER_SIX = [name for name in RECIPES if name.startswith("four_over_six")]


@pytest.mark.parametrize("name", FOUR_OVER_SIX)
def test_b77_the_largest_goes_to_four_where_that_errs_less(name: str) -> None:
    """Error 1 for 6, 5 -> 6, 4; error 0.5 for 6, 5 -> 6, 4.5."""
    x = np.zeros((1, 32), np.float32)
    x[0, :2] = 6, 5
    x[0, 16:18] = 6, 6  # a tie goes to 6
    q = fp4ref.quantize(x, recipe=name)
    assert q.scales.tolist() == [[0x3C, 0x38]]
    assert q.codes[0, :2].tolist() == [6, 5]
    assert q.dequantize()[0, [0, 1, 16, 17]].tolist() == [6, 4.5, 6, 6]
    (measure, largest) = name.split("_")[3:5]
    assert (measure, largest) in {
        (m, r) for m in ("mae", "mse") for r in ("448", "256")
    }


def test_b77_cutlass_maps_the_largest_to_six() -> None:
    x = np.zeros((1, 16), np.float32)
    x[0, :2] = 6, 5
    q = fp4ref.quantize(x)
    assert q.scales.tolist() == [[0x38]]
    assert q.codes[0, :2].tolist() == [7, 6]
    assert q.dequantize()[0, :2].tolist() == [6, 4]
    with pytest.raises(InputError) as caught:
        fp4ref.quantize(x, recipe="4over6")  # a name without the choices
    assert caught.value.gap == "recipe"


def test_b77_what_another_recipe_stored_is_read_right() -> None:
    codes = np.zeros((1, 16), np.uint8)
    codes[0, :2] = 6, 5
    scales = np.array([[0x3C]], np.uint8)
    q = fp4ref.BlockScaled(codes, scales)
    assert q.dequantize()[0, :2].tolist() == [6, 4.5]
    # A checkpoint scaled to 256 * 6 and not to 448 * 6: no reason for a warning.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scaled = fp4ref.BlockScaled.from_packed(
            q.packed(),
            scales,
            format="nvfp4",
            global_scale=1536 / 6,
            global_scale_convention="encode",
        )
    assert (scaled.dequantize()[0, :2] * 256).tolist() == [6, 4.5]


def test_b79_nibbles_half_a_block_apart() -> None:
    codes = np.r_[np.arange(16), np.arange(15, -1, -1)].astype(np.uint8)[None]
    split = (codes[:, :16] | codes[:, 16:] << 4).copy()
    assert split[0].tolist() == [(15 - j) << 4 | j for j in range(16)]
    linear = codes[:, 0::2] | codes[:, 1::2] << 4
    scales = np.array([[0x7F]], np.uint8)

    def read(data: np.ndarray, order: str) -> np.ndarray:
        return fp4ref.BlockScaled.from_packed(
            data, scales, format="mxfp4", nibble_order=order
        ).codes

    assert (read(linear, "low_first") == codes).all()
    for order in ("low_first", "high_first"):
        assert (read(split, order) != codes).any()
    assert (read(split, "split") == codes).all()
    assert (read(linear, "split") != codes).any()


def test_b79_nvfp4_has_the_other_half_eight_later() -> None:
    codes = np.arange(16, dtype=np.uint8)[None]
    split = (codes[:, :8] | codes[:, 8:] << 4).copy()
    assert split[0].tolist() == [(8 + j) << 4 | j for j in range(8)]
    q = fp4ref.BlockScaled.from_packed(
        split, np.array([[0x38]], np.uint8), format="nvfp4", nibble_order="split"
    )
    assert (q.codes == codes).all()


def test_b84_quantising_again_changes_nothing() -> None:
    codes = np.tile(np.arange(16, dtype=np.uint8), (126, 1))
    scales = SCALES[:, None]
    x = dequantize_blocks(codes, scales, scale_format=ScaleFormat.UE4M3)
    again, scales_again = quantize_blocks(x, norm=1.0, scale_format=ScaleFormat.UE4M3)
    assert (again == codes).all()
    assert (scales_again == scales).all()


MAGNITUDES = [Fraction(n, 2) for n in (0, 1, 2, 3, 4, 6, 8, 12)]


def divided(value: np.float32, scale: Fraction) -> int:
    """Code of the exact quotient, ties to the even code."""
    q = Fraction(float(value)) / scale
    return min(range(8), key=lambda code: (abs(q - MAGNITUDES[code]), code % 2))


def test_b84_where_the_reciprocal_differs_from_division() -> None:
    """At 126 scales, 7 boundaries and up to 3 ulp off: 116 of 6,174 codes."""
    values = decode_ue4m3(SCALES).astype(np.float32)
    middle = np.array([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5], np.float32)
    differ: dict[int, int] = {}
    for ulp in range(-3, 4):
        bits = (values[:, None] * middle).view(np.int32) + ulp
        x = np.zeros((126 * 7, 16), np.float32)
        x[:, 0] = np.repeat(6 * values, 7)
        x[:, 1] = bits.view(np.float32).ravel()
        codes, _ = quantize_blocks(x, norm=1.0, scale_format=ScaleFormat.UE4M3)
        exact = [
            divided(v, Fraction(float(s)))
            for v, s in zip(x[:, 1], np.repeat(values, 7), strict=True)
        ]
        differ[ulp] = int((codes[:, 1] != exact).sum())
    assert differ == {-3: 0, -2: 0, -1: 74, 0: 42, 1: 0, 2: 0, 3: 0}


def test_b84_a_value_where_the_two_differ() -> None:
    x = np.zeros((1, 16), np.float32)
    scale = decode_ue4m3(np.array([7], np.uint8))[0]
    x[0, :2] = 6 * scale, 0.02392577938735485
    codes, scales = quantize_blocks(x, norm=1.0, scale_format=ScaleFormat.UE4M3)
    assert scales.tolist() == [[7]]
    assert codes[0, 1] == 4
    assert divided(x[0, 1], Fraction(float(scale))) == 3
