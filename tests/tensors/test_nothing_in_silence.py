"""NaN, Inf and foreign layouts: no recipe, layout or loader lets one by unsaid."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from checkpoints import modelopt, quantised, weights, write
from test_recipes import scale_formats

import fp4ref
from fp4ref.errors import Fp4refError, InputError, LayoutError
from fp4ref.layout import (
    LaidOutScales,
    RaggedScales,
    SwizzledScales,
    layout_nbytes,
    swizzle_scales,
)
from fp4ref.numerics.elements import BLOCKS, ScaleFormat
from fp4ref.tensors.activations import read_activations
from fp4ref.tensors.block_scaled import GlobalScaleWarning
from fp4ref.tensors.checkpoint import Checkpoint
from fp4ref.tensors.global_scales import GlobalScales, quantize_per
from fp4ref.tensors.layer_error import layer_error
from fp4ref.tensors.losses import NonFiniteWarning
from fp4ref.tensors.recipes import RECIPES

F32 = np.float32
MOST = np.finfo(F32).max


def among(value: float) -> np.ndarray:
    """One odd number among ordinary ones."""
    x = np.random.default_rng(0).standard_normal((2, 64)).astype(F32)
    x[1, 37] = value
    return x


def every(value: float) -> np.ndarray:
    return np.full((2, 64), value, F32)


INPUTS = {
    "one NaN": among(np.nan),
    "one -NaN": among(-np.nan),
    "one Inf": among(np.inf),
    "one -Inf": among(-np.inf),
    "all NaN": every(np.nan),
    "all Inf": every(np.inf),
    "one largest": among(-MOST),
    "all largest": every(MOST),
    "near the largest": every(3.2e38),
    "the largest beside the smallest": np.tile(np.array([MOST, 1e-45], F32), (2, 32)),
    "subnormal": every(1e-45),
    "smallest normal": every(2.0**-126),
    "1e30": among(1) * F32(1e30),
    "1e-30": among(1) * F32(1e-30),
    "zeros": every(0),
    "-0": every(-0.0),
}
SCALES_GIVEN = (97.3, 1e-38, 1e38)


def settings() -> Iterator[tuple[str, str, ScaleFormat]]:
    for name, recipe in RECIPES.items():
        for format in recipe.formats:
            for scale_format in scale_formats(recipe, format):
                yield name, format, scale_format


def levels(name: str, scale_format: ScaleFormat) -> list[Any]:
    if RECIPES[name].global_scale == "none":
        return [None]
    auto = ["auto"] if scale_format is ScaleFormat.UE4M3 else []
    return [None, *SCALES_GIVEN, *auto]


@pytest.mark.rotating(12)
@pytest.mark.parametrize(("name", "format", "scale_format"), list(settings()))
def test_a_recipe_says_what_is_not_finite(
    name: str, format: str, scale_format: ScaleFormat
) -> None:
    """Of every input, level, policy and transform: refused, said, or finite."""
    policies = (None, "propagate", "drop", "raise")
    refused = 0
    for (what, x), level, policy, hadamard in product(
        INPUTS.items(), levels(name, scale_format), policies, (None, 16)
    ):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                q = fp4ref.quantize(
                    *(x, format, name, level, scale_format),
                    nonfinite=policy,
                    hadamard_size=hadamard,
                )
            except InputError:
                refused += 1
                continue
            values = q.dequantize()
        said = {each.category for each in caught}
        whole = np.isfinite(x).all() and np.isfinite(values).all()
        assert whole or NonFiniteWarning in said, (what, level, policy, hadamard)
        assert policy != "raise" or np.isfinite(x).all()
        assert RuntimeWarning not in said
    assert refused >= 4  # NaN and Inf, where they are to be refused


@pytest.mark.parametrize("per", ["tensor", "row", "batch"])
def test_a_scale_for_each_part_says_it_too(per: Any) -> None:
    for what, x in INPUTS.items():
        for name in ("cutlass", "flashinfer", "torchao", "modelopt"):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                try:
                    q, scales = quantize_per(x, per, recipe=name)
                except InputError:
                    continue
                values = scales.dequantize(q)
            whole = np.isfinite(x).all() and np.isfinite(values).all()
            assert whole or NonFiniteWarning in {c.category for c in caught}, what


def test_an_alpha_that_is_no_number_is_refused() -> None:
    _, huge = quantize_per(every(1e30), "row")
    _, small = quantize_per(every(1e-30), "row")
    assert np.isfinite(huge.alpha(small)).all()
    for scales, found in ((huge, "inf"), (small, "0")):
        with pytest.raises(InputError, match=rf"alpha\[0, 0\].* is {found} in float32"):
            scales.alpha(scales)


def test_a_value_beyond_float32_is_named() -> None:
    """3.4e38 rounds up to 4 * 2^126, which only float64 holds."""
    q = fp4ref.quantize(every(MOST), "mxfp4", "mx_rceil")
    with pytest.warns(NonFiniteWarning, match=r"128 values .* at \[0, 0\]"):
        assert np.isinf(q.dequantize()).all()
    assert set(q.dequantize(np.float64).ravel()) == {2.0**128}
    largest = fp4ref.BlockScaled(
        np.full((2, 16), 7, np.uint8), np.array([[0], [0x7E]], np.uint8)
    )
    tiny = GlobalScales(np.full((2, 1), 1e-38, F32), "row")
    with pytest.warns(NonFiniteWarning, match=r"16 values .* at \[1, 0\]"):
        assert np.isinf(tiny.dequantize(largest)[1]).all()


# -- what may come in ----------------------------------------------------------------

Q = fp4ref.quantize(among(1))
NO_MATRIX: dict[str, Any] = {
    "None": None,
    "text": "x",
    "bytes": b"x",
    "number": 1.0,
    "ragged": [[1, 2], [3]],
    "empty list": [],
    "object": object(),
    "objects": np.array([[object()] * 64]),
    "a row": np.zeros(64, F32),
    "no rows": np.zeros((0, 64), F32),
    "no columns": np.zeros((2, 0), F32),
    "no matrices": np.zeros((0, 2, 64), F32),
    "K of 40": np.zeros((2, 40), F32),
    "masked": np.ma.masked_array(among(1), among(1) > 1),
    "dates": np.zeros((2, 64), "M8[s]"),
    "fields": np.zeros((2, 64), [("a", F32)]),
    **{
        each: np.zeros((2, 64), each)
        for each in ("f8", "c8", "i1", "i4", "u2", "?", "V4", "S1", "U1")
    },
    "e5m2": np.zeros((2, 64), ml_dtypes.float8_e5m2),
    "e4m3 with Inf": np.zeros((2, 64), ml_dtypes.float8_e4m3),
}
DOORS: dict[str, Callable[[Any], Any]] = {
    "quantize": fp4ref.quantize,
    "quantize_per": lambda v: quantize_per(v, "row"),
    "codes": lambda v: fp4ref.BlockScaled(v, Q.scales),
    "scales": lambda v: fp4ref.BlockScaled(Q.codes, v),
    "packed": lambda v: fp4ref.BlockScaled.from_packed(v, Q.scales, format="nvfp4"),
    "random_bits": lambda v: fp4ref.quantize(among(1), random_bits=v),
    "SwizzledScales": lambda v: SwizzledScales(v, 2, 4),
    "LaidOutScales": lambda v: LaidOutScales(v, 2, 4, "row_major"),
    "LaidOutScales.of": LaidOutScales.of,
    "RaggedScales.of": lambda v: RaggedScales.of(v, (2,)),
    "swizzle_scales": swizzle_scales,
}
MAY_PASS = {"random_bits": {"None"}}


@pytest.mark.parametrize("door", DOORS)
def test_what_is_no_matrix_of_the_right_type_is_refused(door: str) -> None:
    for what, value in NO_MATRIX.items():
        if what in MAY_PASS.get(door, ()):
            continue
        with pytest.raises(Fp4refError) as caught:
            DOORS[door](value)
        assert str(caught.value), what


@pytest.mark.parametrize(
    "view",
    [
        np.asfortranarray,
        lambda x: np.stack([x, -x], -1)[..., 0],
        lambda x: np.pad(x, 3)[3:-3, 3:-3],
        lambda x: x[::-1, ::-1][::-1, ::-1],
        lambda x: x.astype(x.dtype.newbyteorder(">")),
    ],
    ids=["columns first", "every second", "a window", "twice backwards", "big-endian"],
)
def test_how_an_array_lies_in_memory_changes_no_bit(view: Any) -> None:
    x = among(1)
    again = fp4ref.quantize(view(x))
    assert (again.codes == Q.codes).all()
    assert (again.scales == Q.scales).all()
    assert (fp4ref.BlockScaled(view(Q.codes), view(Q.scales)).codes == Q.codes).all()
    half = x.astype(np.float16)
    want, found = (fp4ref.matmul(each, half) for each in (half, view(half)))
    assert (found.view(np.uint32) == want.view(np.uint32)).all()
    per_row, _ = quantize_per(view(x), "row")
    assert (per_row.codes == quantize_per(x, "row")[0].codes).all()


# -- layouts -------------------------------------------------------------------------

LAYOUTS = ("row_major", "128x4", "8x4")


@pytest.mark.parametrize(("rows", "cols"), [(8, 4), (128, 4), (128, 8), (20, 6)])
def test_a_layout_is_not_taken_for_another(rows: int, cols: int) -> None:
    """Where sizes agree too: the type carries the name, and bytes have none."""
    matrix = np.arange(rows * cols).reshape(rows, cols).astype(np.uint8) % 127
    codes = np.zeros((rows, 16 * cols), np.uint8)
    for layout in LAYOUTS:
        laid = LaidOutScales.of(matrix, layout)
        assert (fp4ref.BlockScaled(codes, laid).scales == matrix).all()
        for other in LAYOUTS:
            assert (laid.convert(other).convert(layout).data == laid.data).all()
            with pytest.raises(LayoutError, match="already"):
                LaidOutScales.of(laid, other)
            if layout_nbytes(rows, cols, other) != laid.data.size:
                with pytest.raises(LayoutError, match="Name the layout"):
                    LaidOutScales(laid.data, rows, cols, other)
        with pytest.raises(Fp4refError):  # flat bytes have no layout
            fp4ref.BlockScaled(codes, laid.data)
        with pytest.raises(Fp4refError):
            swizzle_scales(laid)
    swizzled = SwizzledScales(swizzle_scales(matrix), rows, cols)
    assert (fp4ref.BlockScaled(codes, swizzled).scales == matrix).all()
    for wrong in (LaidOutScales.of, swizzle_scales):
        with pytest.raises(Fp4refError):
            wrong(swizzled)
    with pytest.raises(Fp4refError):  # the scales of more rows
        fp4ref.BlockScaled(codes[:-1], swizzled)
    with pytest.raises(Fp4refError):
        fp4ref.BlockScaled(codes[:-1], LaidOutScales.of(matrix, "8x4"))


# -- loaders -------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("at", [(0, 0), (31, 63), (299, 5)])
@pytest.mark.parametrize("value", [np.nan, -np.inf])
def test_a_checkpoint_says_where_a_weight_is_no_number(
    tmp_path: Path, at: tuple[int, int], value: float, dtype: str
) -> None:
    w = weights(300, 64)
    w[at] = value
    w = w.astype(getattr(ml_dtypes, dtype, dtype))
    path = write(tmp_path / "model.safetensors", {"a.weight": w})
    (said,) = Checkpoint(path).load("a.weight").warnings
    assert f"1 NaN or Inf, the first, {value}, at [{at[0]}, {at[1]}]" in said


def test_a_checkpoint_says_that_its_global_scale_makes_inf(tmp_path: Path) -> None:
    tensors = modelopt("a", quantised()) | {"a.weight_scale_2": np.float32(1e36)}
    path = write(tmp_path / "model.safetensors", tensors)
    with pytest.warns(NonFiniteWarning, match="beyond float32"):  # noqa: SIM117
        with pytest.warns(GlobalScaleWarning, match="inverse"):
            weight = Checkpoint(path).load("a.weight")
    assert "It looks like the inverse" in weight.warnings[0]


@pytest.mark.parametrize("format", BLOCKS)
def test_a_scale_that_is_nan_is_named_on_the_way_in(format: str) -> None:
    for scale_format in BLOCKS[format].scale_formats:
        q = fp4ref.quantize(among(1), format, scale_format=scale_format)
        scales = q.scales.copy()
        scales[1, -1] = scale_format.nan_code
        with pytest.warns(NonFiniteWarning, match=r"1 of .* scales\[1, "):
            fp4ref.BlockScaled.from_packed(
                q.packed(), scales, format=format, scale_format=scale_format
            )


def test_activations_that_are_no_numbers_are_counted(tmp_path: Path) -> None:
    x = weights(8, 64, seed=9)
    x[2, 3], x[5, 60] = np.nan, np.inf
    np.save(tmp_path / "x.npy", x)
    rows = read_activations(tmp_path / "x.npy", 64)
    found = layer_error("a", weights(), ["cutlass"], x=rows)
    assert found.notes == ("2 NaN or Inf in x; errors are over what is finite",)


def test_a_product_beyond_float32_is_counted() -> None:
    w, x = weights() * F32(1e30), weights(8, 64, seed=9) * F32(1e30)
    (said,) = layer_error("a", w, ["cutlass"], x=x).notes
    assert said == "cutlass: 256 values beyond float32 are left out"
