"""72c: CUTLASS's kernel of E4M3 and E2M1 with one scale for 32 elements."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from raw_bits import assert_bits_equal

from fp4ref.cutlass.execute import CutlassRun, execute_example
from fp4ref.errors import InputError
from fp4ref.evidence.hardware_events import Key, hardware_events
from fp4ref.layout import swizzle_scales
from fp4ref.numerics import ElementFormat, encode_bf16, matmul_mxf8f6f4, pack_e2m1

sys.path.insert(0, str(Path(__file__).parents[1] / "numerics"))

import exact_unscaled

BLOCK = 32
"""Elements that share a scale, and K of one MMA."""
TILE_K = 256
M, N, K = 200, 520, 384
"""Rows and columns that are no whole tiles, and half a k-tile at the end."""
U8 = NDArray[np.uint8]


@dataclass(frozen=True)
class Operands:
    """Codes (rows, K) and scales (rows, K / 32) of A and B."""

    a: U8
    b: U8
    sfa: U8
    sfb: U8

    @classmethod
    def wide(cls, seed: int) -> Operands:
        """All codes, few of them NaN; scales over 2^25, and one that is NaN."""
        rng = np.random.default_rng(seed)
        a = rng.integers(0, 256, (M, K), np.uint8)
        a[rng.random(a.shape) < 0.9999] &= 0xF7
        b = rng.integers(0, 16, (N, K), np.uint8)
        sfa, sfb = (
            rng.integers(115, 140, (rows, K // BLOCK)).astype(np.uint8)
            for rows in (M, N)
        )
        sfa[32, 3] = 255
        return cls(a, b, sfa, sfb)

    def contents(self) -> dict[str, bytes]:
        return {
            "A": self.a.tobytes(),
            "B": pack_e2m1(self.b).tobytes(),
            "SFA": swizzle_scales(self.sfa).tobytes(),
            "SFB": swizzle_scales(self.sfb).tobytes(),
        }

    def sums(self) -> dict[int, NDArray[np.float32]]:
        """What the model has in the accumulators after each MMA, by its depth in K."""
        sums, c = {}, None
        for block in range(K // BLOCK):
            part, scale = slice(BLOCK * block, BLOCK * (block + 1)), [block]
            c = sums[part.stop] = matmul_mxf8f6f4(
                self.a[:, part],
                self.b[:, part],
                self.sfa[:, scale],
                self.sfb[:, scale],
                c,
                a_format=ElementFormat.E4M3,
                b_format=ElementFormat.E2M1,
            )
        return sums


@pytest.fixture(scope="module")
def operands() -> Operands:
    return Operands.wide(8)


@pytest.fixture(scope="module")
def wide(tools, operands: Operands) -> CutlassRun:
    """The example's small integers cannot tell a right accumulator from a wrong one."""
    found = execute_example(
        "72c", M, N, K, contents=operands.contents(), schedule="late"
    )
    assert found.result.fault is None
    return found


def accumulators(run: CutlassRun) -> Iterator[tuple[Key, int, NDArray[np.uint32]]]:
    """Yield (name, depth in K, words (128, 256)) of what each MMA left in a CTA."""
    for key, event in hardware_events(run.trace).items():
        if key.tensor == "accumulator":
            depth = min(key.k + BLOCK * (key.block + 1), K)
            yield key, depth, event.data.view(np.uint32).reshape(128, 256)


def test_72c_passes_its_own_check(tools):
    found = execute_example("72c", 256, 256, 256, trace=False)
    assert found.result.passed, found.result.problems or "its own check fails"


def test_72c_passes_under_another_schedule(tools):
    found = execute_example("72c", 256, 264, 384, schedule="late", trace=False)
    assert found.result.passed, found.result.problems or "its own check fails"


def test_every_d_of_wide_operands_is_the_models(wide, operands):
    got = wide.allocation("D").view(np.uint16).reshape(M, N)
    want = operands.sums()[K]
    assert_bits_equal(got, encode_bf16(want))
    assert np.isfinite(want).mean() > 0.5
    assert np.isnan(want).any()


def test_every_accumulator_of_wide_operands_is_the_models(wide, operands):
    """In both CTAs of a pair, after each MMA."""
    sums, seen = operands.sums(), Counter()
    for key, depth, words in accumulators(wide):
        expected = sums[depth][key.m : key.m + 128, key.n : key.n + 256]
        rows, columns = expected.shape
        assert_bits_equal(words[:rows, :columns], expected.view(np.uint32))
        seen[key.rank, key.m, key.n] += 1
    # Four pairs side by side in N, two CTAs with 128 rows each, two k-tiles of 256.
    assert seen == {
        (2 * pair + half, 128 * half, 256 * pair): 2 * TILE_K // BLOCK
        for pair in range(4)
        for half in range(2)
    }


WRONG_MODELS = {
    "24 fraction bits": {"fraction_bits": 24},
    "26 fraction bits": {"fraction_bits": 26},
    "no truncation before the sum": {"truncate": False},
    "round to nearest even": {"rounding": "rne"},
    "C is added after the products": {"c_joins_last": True},
}


@pytest.fixture(scope="module")
def steps(wide, operands) -> list[tuple[tuple, int | None, int]]:
    """(arguments of exact_unscaled.mma, scale, bits) of MMAs all over the product."""
    words = np.zeros((K // BLOCK + 1, M, N), np.uint32)
    for key, depth, tile in accumulators(wide):
        at = words[depth // BLOCK, key.m : key.m + 128, key.n : key.n + 256]
        at[:] = tile[: at.shape[0], : at.shape[1]]
    rng = np.random.default_rng(0)
    found = []
    for _ in range(400):
        i, j, block = (int(rng.integers(size)) for size in (M, N, K // BLOCK))
        part = slice(BLOCK * block, BLOCK * (block + 1))
        codes = int(operands.sfa[i, block]), int(operands.sfb[j, block])
        scale = None if 255 in codes else sum(codes) - 2 * 127
        a, b = operands.a[i, part].tolist(), operands.b[j, part].tolist()
        c, d = (int(x) for x in words[block : block + 2, i, j])
        found.append(((a, b, c, "e4m3", "e2m1"), scale, d))
    return found


def test_each_accumulator_follows_from_the_one_before_in_exact_rationals(steps):
    for arguments, scale, d in steps:
        assert exact_unscaled.mma(*arguments, scale=scale) == d


@pytest.mark.parametrize("wrong", WRONG_MODELS.values(), ids=WRONG_MODELS)
def test_the_accumulators_refuse_a_wrong_model(steps, wrong):
    assert any(
        exact_unscaled.mma(*arguments, scale=scale, **wrong) != d
        for arguments, scale, d in steps
    )


def test_contents_of_an_unknown_allocation_are_refused():
    with pytest.raises(InputError, match=r"72c: .* no allocation SFC"):
        execute_example("72c", M, N, K, contents={"SFC": b""}, trace=False)
