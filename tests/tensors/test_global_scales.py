"""global_scales: each part as if it were a tensor of its own."""

from __future__ import annotations

import numpy as np
import pytest

from fp4ref.errors import InputError
from fp4ref.tensors.global_scales import quantize_per
from fp4ref.tensors.quantize import quantize
from fp4ref.tensors.recipes import RECIPES

NAMES = [name for name, r in RECIPES.items() if "nvfp4" in r.formats]


def matrix(*shape: int) -> np.ndarray:
    rng = np.random.default_rng(5)
    spread = np.exp2(rng.integers(-9, 9, (*shape[:-1], 1))).astype(np.float32)
    return rng.standard_normal(shape).astype(np.float32) * spread


@pytest.mark.parametrize("name", [n for n in NAMES if RECIPES[n].rows == 1])
def test_a_row_is_quantised_as_a_tensor_of_one_row(name: str) -> None:
    x = matrix(6, 64)
    q, scales = quantize_per(x, "row", recipe=name)
    for i in range(6):
        alone = quantize(x[i : i + 1], recipe=name, global_scale="auto")
        assert (alone.codes == q.codes[i]).all()
        assert (alone.scales == q.scales[i]).all()
        assert alone.global_scale == scales.encode[i, 0]
    rel = np.linalg.norm(scales.dequantize(q) - x) / np.linalg.norm(x)
    assert rel < 0.15


def test_rows_that_share_a_scale_share_the_global_one() -> None:
    x = np.random.default_rng(5).standard_normal((2, 32, 32), np.float32)
    x[1] *= 9
    q, scales = quantize_per(x, "batch", recipe="transformer_engine_2d")
    for i in range(2):
        alone = quantize(x[i], recipe="transformer_engine_2d", global_scale="auto")
        assert (alone.codes == q.codes[i]).all()
        assert (alone.scales == q.scales[i]).all()
        assert alone.global_scale == scales.encode[i, 0, 0]
    with pytest.raises(InputError, match="per row: 16 rows share a scale"):
        quantize_per(x, "row", recipe="transformer_engine_2d")


def test_batches_groups_and_tensors() -> None:
    x = matrix(3, 8, 32)
    q, scales = quantize_per(x, "batch")
    for i in range(3):
        alone = quantize(x[i], global_scale="auto")
        assert (alone.codes == q.codes[i]).all()
        assert (scales.encode[i] == alone.global_scale).all()
    flat = x.reshape(24, 32)
    counts = (5, 0, 12, 7)
    q, scales = quantize_per(flat, "group", counts=counts)
    start = 0
    for count in counts:
        if count:
            alone = quantize(flat[start : start + count], global_scale="auto")
            assert (alone.codes == q.codes[start : start + count]).all()
            assert set(scales.encode[start : start + count, 0]) == {alone.global_scale}
        start += count
    _, scales = quantize_per(flat, "tensor")
    assert set(scales.encode[:, 0]) == {
        quantize(flat, global_scale="auto").global_scale
    }


def test_alpha_has_a_row_for_a_and_a_column_for_b() -> None:
    x, w = matrix(4, 32), matrix(6, 32)
    (_, a), (_, b) = quantize_per(x, "row"), quantize_per(w, "row")
    alpha = a.alpha(b)
    assert alpha.shape == (4, 6)
    product = np.float32(a.encode[2, 0]) * np.float32(b.encode[5, 0])
    assert alpha[2, 5] == np.float32(1) / product


def test_rows_of_zeros_and_nan_keep_a_finite_scale() -> None:
    x = matrix(4, 32)
    x[1], x[2, 3], x[3, 4] = 0, np.nan, np.inf
    with pytest.warns(UserWarning, match="1 NaN and 1 Inf"):
        _, scales = quantize_per(x, "row")
    assert np.isfinite(scales.encode).all()
    assert scales.encode[[1, 3], 0].tolist() == [1, 1]


def test_what_does_not_fit_is_refused() -> None:
    x = matrix(4, 32)
    for arguments in (
        {"per": "column"},
        {"per": "group"},
        {"per": "row", "counts": (4,)},
        {"per": "group", "counts": (3,)},
        {"per": "group", "counts": (-1, 5)},
        {"per": "row", "recipe": "mx_floor"},
    ):
        with pytest.raises(InputError):
            quantize_per(x, **arguments)  # type: ignore[arg-type]
    _, scales = quantize_per(x, "row")
    with pytest.raises(InputError, match="one for each row"):
        scales.dequantize(quantize(x[:2]))
