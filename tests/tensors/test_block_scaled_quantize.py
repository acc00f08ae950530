"""block_scaled: quantizing an array."""

from __future__ import annotations

import warnings

import ml_dtypes
import numpy as np
import pytest
from small_blocks import row

from fp4ref.errors import InputError
from fp4ref.numerics.elements import ScaleFormat
from fp4ref.tensors.losses import NonFiniteWarning, SaturationWarning, UnderflowWarning
from fp4ref.tensors.quantize import quantize


def test_a_zero_block_beside_a_small_one_stays_zero_without_nan_or_warning() -> None:
    x = np.array([[0.01] * 16 + [0.0] * 15 + [-0.0]], dtype=np.float32)
    q = quantize(x, global_scale="auto")
    assert q.scales.tolist() == [[0x7E, 0x00]]
    assert q.codes[0, 16:].tolist() == [0] * 15 + [8]
    values = q.dequantize()
    assert (values[0, 16:] == 0).all()
    assert (values[0, :16] == np.float32(0.01)).all()


@pytest.mark.filterwarnings("ignore::fp4ref.tensors.losses.UnderflowWarning")
@pytest.mark.parametrize(
    ("amax", "scale"), [(0.005859375, 0x00), (0.00586, 0x01), (0.005, 0x00), (0.0, 0)]
)
def test_a_scale_of_at_most_half_the_smallest_step_is_byte_zero(
    amax: float, scale: int
) -> None:
    q = quantize(row(*[amax] * 16))
    assert q.scales.tolist() == [[scale]]
    assert np.isfinite(q.dequantize()).all()
    assert (q.dequantize() == 0).all() == (scale == 0)


def test_an_all_zero_tensor_gets_global_scale_one() -> None:
    q = quantize(np.zeros((4, 64), dtype=np.float32), global_scale="auto")
    assert q.global_scale == 1.0
    assert (q.scales == 0).all()
    assert (q.codes == 0).all()
    assert (q.dequantize() == 0).all()


@pytest.mark.parametrize("position", range(16))
@pytest.mark.parametrize("nan", [np.nan, -np.nan])
def test_a_nan_anywhere_makes_its_block_nan_and_warns(
    position: int, nan: float
) -> None:
    x = np.full((1, 32), 6, dtype=np.float32)
    x[0, position] = nan
    with pytest.warns(NonFiniteWarning, match="x holds 1 NaN and 0 Inf"):
        q = quantize(x)
    assert q.scales[0, 0] == 0x7F
    assert np.isnan(q.dequantize()[0, :16]).all()
    assert (q.dequantize()[0, 16:] == 6).all()


def test_an_inf_saturates_and_warns() -> None:
    with pytest.warns(NonFiniteWarning, match="x holds 0 NaN and 1 Inf"):
        q = quantize(row(np.inf, 3.0))
    assert q.scales.tolist() == [[0x7E]]
    assert q.codes[0, 0] == 0x7
    assert q.dequantize()[0, :2].tolist() == [2688.0, 0.0]


def test_one_level_of_scales_clips_above_2688_and_warns() -> None:
    with pytest.warns(SaturationWarning, match="1 of 1 blocks saturate"):
        q = quantize(row(*[3000.0] * 16))
    assert q.scales.tolist() == [[0x7E]]
    assert (q.codes == 7).all()
    assert (q.dequantize() == 2688).all()


def test_2688_itself_does_not_saturate() -> None:
    assert (quantize(row(*[2688.0] * 16)).dequantize() == 2688).all()
    with pytest.warns(SaturationWarning):
        quantize(row(*[2688.01] * 16))


def test_a_global_scale_of_2688_over_amax_reaches_3000_without_a_warning() -> None:
    q = quantize(row(*[3000.0] * 16), global_scale=2688 / 3000)
    assert q.scales.tolist() == [[0x7E]]
    assert (q.codes == 7).all()
    assert np.abs(q.dequantize() - 3000).max() <= np.spacing(np.float32(3000))


def test_automatic_global_scales_never_warn_of_saturation() -> None:
    rng = np.random.default_rng(11)
    for amax in rng.uniform(1e-3, 1e5, 500).astype(np.float32):
        quantize(row(amax), global_scale="auto")


def test_the_global_scale_uses_the_magnitude() -> None:
    q = quantize(row(*[-2.0] * 15, 0.001), global_scale="auto")
    assert q.global_scale == 1344.0
    assert (q.codes[0, :15] == 0xF).all()
    assert (q.dequantize()[0, :15] == -2).all()


def test_bfloat16_and_float16_convert_exactly() -> None:
    x = np.random.default_rng(2).normal(size=(4, 32)).astype(np.float32)
    for dtype in (ml_dtypes.bfloat16, np.float16):
        narrow = x.astype(dtype)
        q, wide = quantize(narrow), quantize(narrow.astype(np.float32))
        assert (q.codes == wide.codes).all()
        assert (q.scales == wide.scales).all()


def test_nvfp4_with_ue8m0_scales_and_norm_two_as_in_example_72b() -> None:
    q = quantize(row(6.0, 3.0), scale_format="ue8m0", global_scale=2.0)
    assert q.scale_format is ScaleFormat.UE8M0
    assert q.scales.tolist() == [[128]]
    assert q.dequantize()[0, :2].tolist() == [6.0, 3.0]


@pytest.mark.parametrize(
    ("amax", "scale", "code"),
    [
        (1.0, 0x7D, 6),
        (5.0, 0x7F, 6),
        (6.0, 0x7F, 7),
        (6.5, 0x80, 5),
        (7.0, 0x80, 6),
        (12.5, 0x81, 5),
    ],
)
def test_mxfp4_rounds_its_scale_up(amax: float, scale: int, code: int) -> None:
    x = np.zeros((1, 32), dtype=np.float32)
    x[0, 0] = amax
    q = quantize(x, format="mxfp4")
    assert (q.scales.tolist(), q.codes[0, 0]) == ([[scale]], code)
    assert q.vec_size == 32


def test_a_batch_is_quantised_with_one_scale_per_row_block() -> None:
    x = np.random.default_rng(1).normal(size=(2, 3, 32)).astype(np.float32)
    q = quantize(x)
    assert (q.shape, q.scales.shape) == ((2, 3, 32), (2, 3, 2))
    assert (q.codes[1] == quantize(x[1]).codes).all()


@pytest.mark.parametrize("dtype", [np.float64, np.int32, bool])
def test_input_that_would_be_rounded_twice_is_refused(dtype: type) -> None:
    with pytest.raises(InputError, match=r"need float32, float16 or bfloat16"):
        quantize(np.ones((1, 16), dtype=dtype))


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"recipe": "te"}, "recipe: 'te'; take 'cutlass'"),
        ({"format": "fp4"}, "format: 'fp4'; take 'nvfp4', 'mxfp4'"),
        ({"format": None}, "no format given"),
        ({"format": "mxfp4", "scale_format": "ue4m3"}, "takes 'ue8m0'"),
        ({"scale_format": "e5m3"}, "scale_format: 'e5m3'; take .*'ue4m3'"),
        ({"global_scale": 0.0}, "need a positive number"),
        ({"global_scale": -1.0}, "need a positive number"),
        ({"global_scale": np.nan}, "need a positive number"),
        ({"global_scale": 1e39}, "need a positive number"),
        ({"global_scale": [1.0, 2.0]}, "need a positive number"),
        ({"global_scale": "amax"}, "'amax' with UE4M3 scales"),
        ({"global_scale": "auto", "scale_format": "ue8m0"}, "'auto' with UE8M0"),
    ],
)
def test_unknown_options_are_refused_by_name(
    options: dict[str, object], why: str
) -> None:
    with pytest.raises(InputError, match=why):
        quantize(np.ones((1, 32), dtype=np.float32), **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("shape", [(16,), (1, 15), (1, 24), (0, 16), (1, 0)])
def test_shapes_that_are_not_whole_blocks_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match="K a multiple of 16"):
        quantize(np.ones(shape, dtype=np.float32))


def test_a_global_scale_in_the_wrong_direction_is_named() -> None:
    x = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32)
    right = quantize(x, global_scale="auto")
    assert right.global_scale is not None
    with pytest.warns(UnderflowWarning, match="256 of 256 blocks decode to zero"):
        wrong = quantize(x, global_scale=1 / right.global_scale**2)
    assert not wrong.dequantize().any()


@pytest.mark.parametrize(("bits", "vanishes"), [(0, True), (1, False)])
def test_the_edge_of_underflow(bits: int, vanishes: bool) -> None:
    """6 * 2^-10 ties to scale 0; the next float32 gets the smallest scale."""
    edge = np.array([6 * 2.0**-10], np.float32)
    x = np.zeros((1, 16), np.float32)
    x[0, 0] = (edge.view(np.uint32) + np.uint32(bits)).view(np.float32)[0]
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        q = quantize(x)
    assert (q.scales[0, 0] == 0) == vanishes
    assert [w.category for w in seen] == [UnderflowWarning] * vanishes
