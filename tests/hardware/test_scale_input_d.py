"""scale-input-d: D is divided by a power of two before the product is added."""

from __future__ import annotations

import numpy as np
import pytest
from on_machine import launch, machine
from test_mma_unscaled import (
    A_AT,
    B_AT,
    commit_and_wait,
    descriptor,
    idesc,
    with_tmem,
)

from fp4ref.errors import DescriptorFault, NotModelled
from fp4ref.hardware import mma_unscaled

N = 16
KINDS = {"f16": (np.float16, 0, 16), "tf32": (np.float32, 2, 8)}


def small_integers(kind, seed):
    """A and B in numbers whose sums are exact in every order."""
    dtype, _, k = KINDS[kind]
    rng = np.random.default_rng(seed)
    return [rng.integers(-3, 4, (rows, k)).astype(dtype) for rows in (128, N)]


def product(kind, scale, c, *, schedule="late", a=None, b=None):
    """D of one MMA."""
    a, b = small_integers(kind, 5) if a is None else (a, b)
    got = []

    def setup(cta):
        for at, tile in ((A_AT, a), (B_AT, b)):
            rows = tile.view(np.uint8).reshape(len(tile), 32)
            for row, line in enumerate(rows):
                for byte in range(0, 32, 16):
                    linear = at + 128 * row + byte
                    cta.smem.poke(linear ^ (linear >> 7 & 7) << 4, line[byte:][:16])

    def steps(warp):
        for lane in range(128):
            warp.tmem.poke(lane * 2048, c[lane].view(np.uint8))
        mma_unscaled.mma(
            warp,
            0,
            descriptor(A_AT),
            descriptor(B_AT),
            idesc(N, a=KINDS[kind][1], b=KINDS[kind][1]) if kind in KINDS else 0,
            True,
            kind=kind,
            scale_input_d=scale,
        )
        yield from commit_and_wait(warp)
        got.append(warp.tmem.cells[:, :N].copy().view(np.float32))

    launch(machine(schedule), with_tmem(steps), setup=setup)
    return got[0], a.astype(float) @ b.astype(float).T


@pytest.mark.parametrize("schedule", ["eager", "late", 1])
@pytest.mark.parametrize("scale", [0, 1, 4, 15])
@pytest.mark.parametrize("kind", KINDS)
def test_d_is_divided_before_the_sum(kind, scale, schedule):
    """Integers and eighths: every order of addition gives the same, exact sum."""
    c = np.random.default_rng(8).integers(-512, 512, (128, N)).astype(np.float32)
    c *= np.float32(2.0 ** (scale - 3))
    found, exact = product(kind, scale, c, schedule=schedule)
    np.testing.assert_array_equal(found, exact + c.astype(float) / 2**scale)


def test_infinities_and_nans_stay_what_they_are():
    c = np.zeros((128, N), np.float32)
    c[0], c[1], c[2] = np.inf, -np.inf, np.nan
    found, _ = product("f16", 15, c)
    assert (found[0] == np.inf).all()
    assert (found[1] == -np.inf).all()
    assert np.isnan(found[2]).all()


def test_a_quotient_that_is_no_float32_is_in_the_list():
    c = np.full((128, N), 2.0**-126 * 1.25, np.float32)
    found, exact = product("f16", 1, c)
    np.testing.assert_array_equal(found[exact != 0], exact[exact != 0])
    c[:] = np.float32(2.0**-126) * np.float32(1 + 2.0**-23)
    with pytest.raises(NotModelled, match="no float32") as refused:
        product("f16", 1, c)
    assert refused.value.gap == "mma-scale-input-d"


@pytest.mark.parametrize(
    ("kind", "scale", "says"),
    [("f8f6f4", 1, "is valid for"), ("f16", 16, "is 0 to 15"), ("f16", -1, "0 to 15")],
)
def test_scales_that_ptx_lacks(kind, scale, says):
    def steps(warp):
        tiles = descriptor(A_AT), descriptor(B_AT)
        mma_unscaled.mma(
            warp, 0, *tiles, idesc(N), True, kind=kind, scale_input_d=scale
        )

    with pytest.raises(DescriptorFault, match=says):
        launch(machine(), with_tmem(steps))
