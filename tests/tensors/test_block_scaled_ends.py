"""block_scaled: numbers near both ends of float32 come back, or are lost in words."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from fp4ref.tensors.losses import UnderflowWarning
from fp4ref.tensors.quantize import quantize


@pytest.mark.parametrize(("power", "shrinks"), [(119, True), (118, False)])
def test_a_global_scale_that_shrinks_blocks_is_named(power: int, shrinks: bool) -> None:
    """2^119 over the smallest scale, 2^-9, is beyond float32; 2^118 is not."""
    x = np.zeros((1, 32), np.float32)
    x[0, 0] = x[0, 16] = 6 * 2.0 ** -(power + 9)
    x[0, 17] = -6 * 2.0**-power
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        q = quantize(x, global_scale=2.0**power)
    assert [str(w.message)[:35] for w in seen] == [
        "1 of 2 blocks come back too small: "[:35]
    ] * shrinks
    assert [w.category for w in seen] == [UnderflowWarning] * shrinks
    assert q.scales.tolist() == [[0x01, 0x38]]


def test_auto_never_shrinks_a_block() -> None:
    largest = float(np.finfo(np.float32).max)
    for exponent in range(-126, 127):
        x = np.full((1, 16), 1.2 * 2.0**exponent, np.float32)
        q = quantize(x, global_scale="auto")
        assert q.global_scale is not None
        assert q.global_scale <= largest / 512
        back = q.dequantize(np.float64)
        assert np.abs(back / x - 1).max() <= 0.25, exponent


def test_mxfp4_says_when_its_smallest_scale_loses_most() -> None:
    x = np.full((2, 32), 2.0**-129, np.float32)
    with pytest.warns(UnderflowWarning, match="2 of 2 blocks decode to zero"):
        assert not quantize(x, format="mxfp4").dequantize().any()
    edge = (x.view(np.uint32) + np.uint32(1)).view(np.float32)
    assert quantize(edge, format="mxfp4").dequantize(np.float64).all()
