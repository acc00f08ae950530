"""Numbers and global scales as others report them: B01 to B16."""

from __future__ import annotations

import ctypes
import os
import platform
import shutil
import subprocess
import warnings
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fp4ref
from fp4ref.errors import InputError
from fp4ref.numerics import (
    ScaleFormat,
    decode_e2m1,
    decode_ue4m3,
    decode_ue8m0,
    encode_e2m1,
    encode_ue4m3,
    pack_e2m1,
    unpack_e2m1,
)
from fp4ref.tensors.block_scaled import GlobalScaleWarning
from fp4ref.tensors.global_scales import quantize_per
from fp4ref.tensors.losses import NonFiniteWarning, SaturationWarning
from fp4ref.tensors.recipes import RECIPES

NVFP4 = [name for name, recipe in RECIPES.items() if "nvfp4" in recipe.formats]


def f32(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


def row(*values: float, k: int = 16) -> np.ndarray:
    x = np.zeros((1, k), np.float32)
    x[0, : len(values)] = values
    return x


def quietly(x: np.ndarray, *arguments: Any, **options: Any) -> fp4ref.BlockScaled:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fp4ref.quantize(x, *arguments, **options)


def test_b01_ties_go_to_the_even_code() -> None:
    ties = f32(0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5)
    assert encode_e2m1(ties).tolist() == [0, 2, 2, 4, 4, 6, 6]
    assert encode_e2m1(-ties).tolist() == [8, 10, 10, 12, 12, 14, 14]
    assert encode_e2m1(f32(7, -100, -0.0, -0.1)).tolist() == [7, 15, 8, 8]


def test_b01_the_sign_of_zero_is_the_recipes() -> None:
    """PTX keeps -0; ModelOpt and compressed-tensors ask whether x is below 0."""
    x = row(6, -0.0, -0.1)
    for name, recipe in RECIPES.items():
        if "nvfp4" in recipe.formats:
            below = name.startswith(("modelopt", "compressed"))
            assert quietly(x, recipe=name).codes[0, 1:3].tolist() == [8 - 8 * below, 8]


def test_b02_scales_tie_to_even_and_saturate() -> None:
    x = f32(4.25, 1.0625, 1.1875, 448, 449, 464, 465, 1e30, 2**-10, 3 * 2**-10)
    want = [0x48, 0x38, 0x3A, *[0x7E] * 5, 0, 2]
    assert encode_ue4m3(x).tolist() == want
    assert encode_ue4m3(f32(2**-10 * 1.001)).tolist() == [1]


def test_b03_every_code_decodes_by_its_fields() -> None:
    values = decode_ue4m3(np.arange(256, dtype=np.uint8))
    for code in range(127):
        exponent, fraction = divmod(code, 8)
        exact = Fraction(fraction, 512)
        if exponent:
            exact = (1 + Fraction(fraction, 8)) * Fraction(2) ** (exponent - 7)
        assert Fraction(float(values[code])) == exact
    known = {1: 0.001953125, 3: 0.005859375, 7: 0.013671875, 8: 0.015625, 0x7E: 448}
    assert {code: float(values[code]) for code in known} == known
    codes = np.array([1, 9, 0, 8], np.uint8)
    assert decode_e2m1(codes).tolist() == [0.5, -0.5, 0, 0]
    assert np.signbit(decode_e2m1(codes)).tolist() == [False, True, False, True]


def test_b04_unsigned_scales_have_the_bias_and_the_largest_of_e4m3() -> None:
    values = decode_ue4m3(np.arange(256, dtype=np.uint8))
    assert np.nanmax(values) == 448
    assert np.isnan(values[[0x7F, 0xFF]]).all()
    same = values[:128].view(np.uint32) == values[128:].view(np.uint32)
    assert same.all()  # bit 7 is ignored, never a sign


def test_b05_the_ends_of_ue8m0() -> None:
    codes = np.array([0, 1, 0x7F, 0xFE, 0xFF], np.uint8)
    values = decode_ue8m0(codes)
    assert values[:4].tolist() == [2.0**-127, 2.0**-126, 1, 2.0**127]
    assert values.view(np.uint32)[0] == 0x00400000
    assert np.isnan(values[4])


def test_b05_a_product_with_scale_byte_zero_is_not_zero() -> None:
    """Two codes of 1 under 2^-127 and 2^127, and the rest zeros."""
    a = np.zeros((1, 64), np.uint8)
    a[0, 0] = 2
    low = fp4ref.BlockScaled(a, np.zeros((1, 2), np.uint8), "mxfp4")
    high = fp4ref.BlockScaled(a, np.full((1, 2), 0xFE, np.uint8), "mxfp4")
    assert fp4ref.matmul(low, high).tolist() == [[1.0]]


FLUSH = """
#include <immintrin.h>
extern "C" void flush(int on) {
  _mm_setcsr(on ? _mm_getcsr() | 0x8040 : _mm_getcsr() & ~0x8040);
}
"""


@pytest.fixture
def flushing(tmp_path: Path) -> Iterator[Callable[[bool], None]]:
    """Switches FTZ and DAZ of this thread, as loading a fast-math library does."""
    compiler = shutil.which(os.environ.get("CXX", "g++"))
    if compiler is None or platform.machine() not in ("x86_64", "AMD64"):
        pytest.skip("needs g++ on x86-64")
    source, made = tmp_path / "flush.cpp", tmp_path / "flush.so"
    source.write_text(FLUSH)
    command = [compiler, "-shared", "-fPIC", "-o", str(made), str(source)]
    subprocess.run(command, check=True)
    flush = ctypes.CDLL(str(made)).flush
    yield flush
    flush(False)


def test_b05_a_thread_that_flushes_subnormals_is_refused(
    flushing: Callable[[bool], None],
) -> None:
    x = np.full((1, 32), 1e-39, np.float32)
    q = quietly(x)
    zero = fp4ref.BlockScaled(
        np.full((1, 32), 2, np.uint8), np.zeros((1, 1), np.uint8), "mxfp4"
    )
    doors: list[Callable[[], Any]] = [
        lambda: quietly(x),
        lambda: quietly(x, "mxfp4", "mx_floor"),
        lambda: quietly(x, recipe="torchao"),
        lambda: quantize_per(x, "row"),
        zero.dequantize,
        lambda: fp4ref.matmul(zero, zero),
        lambda: fp4ref.run(q, q, trace=False),
    ]
    for door in doors:
        flushing(True)
        with pytest.raises(InputError, match="flushes subnormal numbers"):
            door()
        flushing(False)
        door()
    codes = np.arange(256, dtype=np.uint8)
    flushing(True)
    values = decode_ue8m0(codes).view(np.uint32)
    flushing(False)
    assert values[0] == 0x00400000
    assert (values == decode_ue8m0(codes).view(np.uint32)).all()


def test_b06_a_zero_block_beside_a_small_one_has_no_nan_scale() -> None:
    x = np.array([[0.01] * 16 + [0.0] * 16], np.float32)
    for name, recipe in RECIPES.items():
        if "nvfp4" not in recipe.formats:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            q = fp4ref.quantize(x, recipe=name, global_scale="auto")
        assert (q.scales != 0x7F).all()
        assert (q.dequantize()[0, 16:] == 0).all()
        assert not (q.codes[0, 16:] & 7).any()


OF_ZEROS = {"torchao": 0x08, "modelopt": 0x38, "compressed_tensors": 0x20}
TINY = {  # scale, code and value of 0.005 everywhere, without a global scale
    "modelopt": (1, 5, 0.005859375),
    "torchao": (8, 1, 0.0078125),
    "compressed_tensors": (0x20, 0, 0),
}


@pytest.mark.parametrize("name", NVFP4)
def test_b07_the_scale_of_a_zero_block_is_the_recipes(name: str) -> None:
    q = fp4ref.quantize(row(), recipe=name)
    stem = name.removesuffix("_bf16")
    if name != "modelopt_static":
        assert q.scales.tolist() == [[OF_ZEROS.get(stem, 0)]]
    assert not q.dequantize().any()
    x = np.full((1, 16), 0.005, np.float32)
    q = quietly(x, recipe=name)
    assert np.isfinite(q.dequantize()).all()
    if stem in TINY:
        scale, code, value = TINY[stem]
        assert q.scales.tolist() == [[scale]]
        assert set(q.codes[0]) == {code}
        assert set(q.dequantize()[0]) == {value}
    elif name.startswith("four"):  # 3/2 of the scale still rounds up to the smallest
        assert q.scales.tolist() == [[1]]
    elif name != "modelopt_static":
        assert q.scales.tolist() == [[0]]
        assert not q.dequantize().any()


def test_b07_a_static_zero_block_can_have_the_largest_scale() -> None:
    x = np.array([[0.5] * 16 + [0.0] * 16], np.float32)
    q = fp4ref.quantize(x, recipe="modelopt_static", global_scale="auto")
    assert q.scales.tolist() == [[0x7E, 0x7E]]


@pytest.mark.parametrize("amax", [0.005859375, 0.00586])
def test_b07_the_edge_between_scale_zero_and_one(amax: float) -> None:
    q = quietly(np.full((1, 16), amax, np.float32))
    assert q.scales.tolist() == [[int(amax == 0.00586)]]


@pytest.mark.parametrize("name", RECIPES)
def test_b08_a_tensor_of_zeros(name: str) -> None:
    format = RECIPES[name].formats[0]
    auto = "auto" if format == "nvfp4" else None
    q = fp4ref.quantize(np.zeros((4, 64), np.float32), format, name, auto)
    assert q.global_scale in (None, 1.0)
    assert (fp4ref.matmul(q, q).view(np.uint32) == 0).all()


@pytest.mark.parametrize("position", range(16))
@pytest.mark.parametrize("nan", [np.nan, -np.nan])
def test_b09_a_nan_propagates_or_is_dropped(position: int, nan: float) -> None:
    x = row(3.0) if position else row(0, 3.0)
    x[0, position] = nan
    three = int(position == 0)
    with pytest.warns(NonFiniteWarning):
        kept = fp4ref.quantize(x, nonfinite="propagate")
    assert kept.scales.tolist() == [[0x7F]]
    assert np.isnan(kept.dequantize()).all()
    with pytest.warns(NonFiniteWarning):
        dropped = fp4ref.quantize(x, nonfinite="drop")
    assert dropped.scales.tolist() == [[0x30]]
    assert dropped.codes[0, position] == 7
    assert dropped.dequantize()[0, [position, three]].tolist() == [3, 3]
    with pytest.raises(InputError, match=rf"at \(0, {position}\)"):
        fp4ref.quantize(x, nonfinite="raise")


def test_b09_an_inf_saturates() -> None:
    with pytest.warns(NonFiniteWarning):
        q = fp4ref.quantize(row(np.inf, 3))
    assert q.scales.tolist() == [[0x7E]]
    assert q.codes[0, 0] == 7
    assert q.dequantize()[0, :2].tolist() == [2688, 0]


@pytest.mark.parametrize(
    ("value", "divided", "multiplied"), [(4.6875, 4, 5), (2.34375, 2, 3), (9.375, 6, 7)]
)
def test_b10_a_reciprocal_and_a_division_differ(
    value: float, divided: int, multiplied: int
) -> None:
    for name, recipe in RECIPES.items():
        if "nvfp4" not in recipe.formats or name.startswith("four"):
            continue
        q = quietly(row(11.25, value), recipe=name)
        assert q.scales.tolist() == [[0x3F]]
        divides = name.startswith(("modelopt", "compressed"))
        assert q.codes[0, 1] == (divided if divides else multiplied), name


MX = {  # amax: (scale, code) by floor, even, rceil, ceil
    1.0: ((0x7D, 6), (0x7D, 6), (0x7D, 6), (0x7D, 6)),
    5.0: ((0x7F, 6), (0x7F, 6), (0x7F, 6), (0x80, 4)),
    6.0: ((0x7F, 7), (0x7F, 7), (0x7F, 7), (0x80, 5)),
    6.5: ((0x7F, 7), (0x7F, 7), (0x80, 5), (0x80, 5)),
    7.0: ((0x7F, 7), (0x80, 6), (0x80, 6), (0x80, 6)),
    8.0: ((0x80, 6), (0x80, 6), (0x80, 6), (0x80, 6)),
    12.5: ((0x80, 7), (0x80, 7), (0x81, 5), (0x81, 5)),
}


@pytest.mark.parametrize("amax", MX)
def test_b11_four_ways_to_choose_a_power_of_two(amax: float) -> None:
    found = []
    for mode in ("floor", "even", "rceil", "ceil"):
        q = fp4ref.quantize(row(amax, k=32), "mxfp4", f"mx_{mode}")
        found.append((int(q.scales[0, 0]), int(q.codes[0, 0])))
    assert tuple(found) == MX[amax]


@pytest.mark.parametrize("mode", ["floor", "even", "rceil", "ceil"])
def test_b11_a_block_of_zeros_has_scale_byte_zero(mode: str) -> None:
    q = fp4ref.quantize(row(k=32), "mxfp4", f"mx_{mode}")
    assert (q.scales.tolist(), q.codes.any()) == ([[0]], False)


def test_b12_one_level_clips_and_says_so() -> None:
    x = np.full((1, 16), 3000, np.float32)
    with pytest.warns(SaturationWarning):
        q = fp4ref.quantize(x)
    assert (q.scales.tolist(), set(q.dequantize()[0])) == ([[0x7E]], {2688.0})
    q = fp4ref.quantize(x, global_scale=2688 / 3000)
    assert np.abs(q.dequantize() - 3000).max() <= np.spacing(np.float32(3000))


def test_b13_a_global_scale_or_its_inverse() -> None:
    x = np.full((1, 16), 0.75, np.float32)
    encode = fp4ref.quantize(x, global_scale="auto")
    decode = fp4ref.quantize(x, recipe="modelopt", global_scale="auto")
    for q in (encode, decode):
        assert q.scales.tolist() == [[0x7E]]
        assert set(q.codes[0]) == {7}
        assert q.dequantize()[0, 0] == pytest.approx(0.75, rel=1e-7)
    assert encode.global_scale == 3584

    def read(convention: str | None) -> fp4ref.BlockScaled:
        return fp4ref.BlockScaled.from_packed(
            encode.packed(),
            encode.scales,
            format="nvfp4",
            global_scale=3584,
            global_scale_convention=convention,  # type: ignore[arg-type]
        )

    with pytest.raises(InputError, match="The number itself does not tell"):
        read(None)
    with pytest.warns(GlobalScaleWarning, match="the scale is the inverse"):
        wrong = read("decode")
    assert wrong.dequantize()[0, 0] == pytest.approx(9_633_792)


def test_b14_a_global_scale_belongs_in_alpha() -> None:
    """Folding 1/3 into the scale 1.0 gives 0x2B, 3.1 % off."""
    ones = fp4ref.BlockScaled(
        np.full((1, 64), 2, np.uint8), np.full((1, 4), 0x38, np.uint8)
    )
    assert fp4ref.matmul(ones, ones).tolist() == [[64.0]]
    half = fp4ref.BlockScaled(ones.codes, ones.scales, global_scale=2.0)
    quarter = fp4ref.BlockScaled(ones.codes, ones.scales, global_scale=4.0)
    assert fp4ref.run(half, quarter, trace=False).d.tolist() == [[8.0]]
    folded = encode_ue4m3(f32(1 / 3))
    assert folded.tolist() == [0x2B]
    assert abs(decode_ue4m3(folded)[0] * 3 - 1) == pytest.approx(0.03125)


@pytest.mark.parametrize("name", NVFP4)
def test_b15_the_largest_is_a_magnitude(name: str) -> None:
    x = row(*[-2.0] * 15, 0.001)
    q = fp4ref.quantize(x, recipe=name, global_scale="auto")
    assert q.global_scale == pytest.approx(RECIPES[name].range * 3, rel=1e-6)
    assert q.dequantize()[0, :15] == pytest.approx(-2.0, rel=1e-6)


def test_b16_element_zero_is_in_the_low_nibble() -> None:
    codes = encode_e2m1(f32(1, -6, 0.5, 3))
    assert pack_e2m1(codes).tolist() == [0xF2, 0x51]
    every = np.arange(256, dtype=np.uint8)[None]
    assert (pack_e2m1(unpack_e2m1(every)) == every).all()
    data = np.tile(pack_e2m1(codes), 4)[None]
    swapped = fp4ref.BlockScaled.from_packed(
        data << np.uint8(4) | data >> np.uint8(4),
        np.array([[0x38]], np.uint8),
        format="nvfp4",
        nibble_order="high_first",
    )
    assert (swapped.codes[0] == np.tile(codes, 4)).all()


def test_b34_a_scale_byte_does_not_tell_its_format() -> None:
    values = {
        format: format.decode(np.array([0x38, 0x7F, 0x01], np.uint8)).tolist()
        for format in ScaleFormat
    }
    assert values[ScaleFormat.UE8M0] == [2.0**-71, 1.0, 2.0**-126]
    assert values[ScaleFormat.UE4M3][::2] == [1.0, 2.0**-9]
    assert np.isnan(values[ScaleFormat.UE4M3][1])
    with pytest.raises(InputError, match="a scale byte does not tell it"):
        fp4ref.BlockScaled(
            np.zeros((1, 64), np.uint8), np.zeros((1, 4), np.uint8), None
        )
    with pytest.raises(InputError, match=r"mxfp4 takes|takes 'ue8m0'"):
        fp4ref.quantize(row(k=32), "mxfp4", scale_format="ue4m3")
