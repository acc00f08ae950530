"""quantize_jit: a large matrix has the codes that the array operations give."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from assert_bits import assert_bits_equal

import fp4ref
from fp4ref.numerics import amax_global_scale, quantize, quantize_blocks
from fp4ref.numerics.elements import ScaleFormat
from fp4ref.numerics.quantize import block_magnitudes

BLOCKS = 1 << 14


def large(kind: str, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    shape = (BLOCKS // 16, 512)
    if kind == "bits":
        return rng.integers(0, 1 << 32, shape, np.uint32).view(np.float32)
    if kind == "ties":
        halves = rng.integers(-13, 14, shape) / 2 * 2.0 ** rng.integers(-3, 4, shape)
        return halves.astype(np.float32)
    exponents = np.repeat(rng.integers(-20, 12, (shape[0], 32)), 16, axis=1)
    return np.ldexp(rng.standard_normal(shape), exponents).astype(np.float32)


@pytest.mark.parametrize("norm", [1.0, 5.0, 2.0**-30, 3e38])
@pytest.mark.parametrize("kind", ["bits", "ties", "wide"])
@pytest.mark.parametrize("scale_format", ScaleFormat)
def test_codes_and_scales_are_those_of_the_arrays(
    scale_format, kind, norm, rotating_seed, monkeypatch
):
    z = large(kind, rotating_seed)
    asked = {"norm": norm, "scale_format": scale_format, "vec_size": 16}
    codes, scales = quantize_blocks(z, **asked)
    monkeypatch.setattr(quantize, "_LARGE", z.size + 1)
    slow_codes, slow_scales = quantize_blocks(z, **asked)
    assert_bits_equal(scales, slow_scales)
    assert_bits_equal(codes, slow_codes)


@pytest.mark.parametrize("scale_format", ScaleFormat)
def test_every_place_of_rounding_of_a_scale(scale_format, monkeypatch):
    """Each code's neighbours: the float32 at, below and above every midpoint."""
    values = scale_format.decode(np.arange(0x7F, dtype=np.uint8))
    middles = (values[1:] + values[:-1]) / 2
    near = np.concatenate([values, middles, np.array([448, 464, 480, 1e30])])
    bits = np.float32(near).view(np.int32)[:, None] + np.arange(-2, 3)
    amax = np.abs(np.maximum(bits, 0).astype(np.int32).view(np.float32).ravel() * 6)
    z = np.zeros((1 << 15, 16), np.float32)
    z[: amax.size, 3] = amax
    asked = {"norm": 1.0, "scale_format": scale_format}
    _, scales = quantize_blocks(z, **asked)
    monkeypatch.setattr(quantize, "_LARGE", z.size + 1)
    assert_bits_equal(scales, quantize_blocks(z, **asked)[1])


@pytest.mark.parametrize("kind", ["bits", "wide"])
def test_magnitudes_are_those_of_the_arrays(kind, monkeypatch):
    z = large(kind, 4)
    found, scale = block_magnitudes(z, 16), amax_global_scale(z)
    monkeypatch.setattr(quantize, "_LARGE", z.size + 1)
    slow = block_magnitudes(z, 16)
    assert_bits_equal(found[0], slow[0])
    assert found[1:] == slow[1:]
    assert scale == amax_global_scale(z)


def test_a_large_matrix_takes_less_memory_than_itself():
    z = large("wide", 1)
    fp4ref.quantize(z, global_scale="auto")
    tracemalloc.start()
    fp4ref.quantize(z, global_scale="auto")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < z.nbytes
