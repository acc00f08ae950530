"""matmul: the accumulators of whole matrices, against exact rationals and by laws."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tiny_road
from raw_bits import assert_bits_equal, raw
from wide_operands import UE4M3, UE8M0, wide_pair

from fp4ref import BlockScaled, ScaleFormat, matmul
from fp4ref.errors import InputError


@pytest.mark.parametrize("scale_format", [UE4M3, UE8M0])
@pytest.mark.parametrize("k", [16, 32, 48, 64, 80, 1056])
def test_sampled_accumulators_equal_exact_rationals(
    scale_format: ScaleFormat, k: int, rotating_seed: int
) -> None:
    a, b = wide_pair(rotating_seed, 7, 9, k, scale_format=scale_format)
    d = raw(matmul(a, b))
    for i, j in ((0, 0), (6, 8), (1, 1), (2, 7), (5, 3), (3, 4)):
        exact = tiny_road.accumulate(
            a.codes[i].tolist(),
            b.codes[j].tolist(),
            a.scales[i].tolist(),
            b.scales[j].tolist(),
            scale_format is UE8M0,
        )
        assert int(d[i, j]) == exact, f"[{i}, {j}]: {int(d[i, j]):#010x}, {exact:#010x}"


@pytest.mark.parametrize("scale_format", [UE4M3, UE8M0])
def test_exchanging_a_and_b_transposes_the_result(scale_format: ScaleFormat) -> None:
    a, b = wide_pair(1, 40, 30, 320, scale_format=scale_format)
    assert_bits_equal(matmul(a, b), np.ascontiguousarray(matmul(b, a).T))


def test_groups_inside_a_slab_may_be_in_any_order() -> None:
    """The five terms of one instruction are added at once; slabs are not."""
    a, b = wide_pair(2, 30, 30, 128)
    inside = np.array([2, 0, 3, 1, 5, 4, 7, 6])
    across = np.array([4, 5, 6, 7, 0, 1, 2, 3])

    def reordered(q: BlockScaled, order: Any) -> BlockScaled:
        blocks = q.codes.reshape(*q.codes.shape[:-1], -1, 16)[..., order, :]
        return BlockScaled(blocks.reshape(q.codes.shape), q.scales[..., order])

    same = matmul(reordered(a, inside), reordered(b, inside))
    assert_bits_equal(same, matmul(a, b))
    other = matmul(reordered(a, across), reordered(b, across))
    assert (raw(other) != raw(same)).any()


def test_a_batch_is_its_matrices() -> None:
    a, b = wide_pair(3, 20, 10, 96, 4)
    d = matmul(a, b)
    assert d.shape == (4, 20, 10)
    for i in range(4):
        one = matmul(
            BlockScaled(a.codes[i], a.scales[i]), BlockScaled(b.codes[i], b.scales[i])
        )
        assert_bits_equal(d[i], one)


def test_global_scales_have_no_place_in_the_accumulator() -> None:
    a, b = wide_pair(4, 20, 10, 96)
    scaled = BlockScaled(a.codes, a.scales, global_scale=1234.5)
    assert_bits_equal(matmul(scaled, b), matmul(a, b))


def test_rows_do_not_depend_on_one_another() -> None:
    a, b = wide_pair(5, 200, 150, 512)
    part = matmul(
        BlockScaled(a.codes[77:79], a.scales[77:79]),
        BlockScaled(b.codes[11:12], b.scales[11:12]),
    )
    assert_bits_equal(part, np.ascontiguousarray(matmul(a, b)[77:79, 11:12]))


def test_truncation_and_alignment_are_those_of_the_model() -> None:
    """B36: 2^24 and small addends; 2^14 - 2^14 + 2^-20 in one instruction."""
    codes = np.zeros((1, 128), np.uint8)
    scales = np.full((1, 8), 0x38, np.uint8)
    big, small = codes.copy(), codes.copy()
    big_scales, small_scales = scales.copy(), scales.copy()
    big[0, [0, 64]] = 6, 5  # 4 and 3
    small[0, [0, 64]] = 6, 2  # 4 and 1
    big_scales[0, 0], small_scales[0, 0] = 0x70, 0x78 - 8  # 128 each: 2^18
    d = matmul(BlockScaled(big, big_scales), BlockScaled(small, small_scales))
    assert d[0, 0] == 2.0**18 + 3

    a, b = np.zeros((1, 64), np.uint8), np.zeros((1, 64), np.uint8)
    a[0, [0, 16, 32]], b[0, [0, 16, 32]] = (1, 9, 1), 1
    for tiny, wanted in ((0x01, 0.0), (0x08, 2.0**-14)):
        s = np.array([[0x78, 0x78, tiny, 0]], np.uint8)
        assert matmul(BlockScaled(a, s), BlockScaled(b, s))[0, 0] == wanted


def zeros(rows: int, k: int, lead: tuple[int, ...] = (), **kind: Any) -> BlockScaled:
    vec = 32 if kind.get("format") == "mxfp4" else 16
    return BlockScaled(
        np.zeros((*lead, rows, k), np.uint8),
        np.zeros((*lead, rows, k // vec), np.uint8),
        **kind,
    )


@pytest.mark.parametrize(
    ("a", "b", "rule"),
    [
        (zeros(2, 64), zeros(2, 96), "K and the batch dimension must agree"),
        (
            zeros(2, 64, (2,)),
            zeros(2, 64, (3,)),
            "K and the batch dimension must agree",
        ),
        (zeros(2, 64, (1,)), zeros(2, 64), "K and the batch dimension must agree"),
        (zeros(2, 64), zeros(2, 64, scale_format="ue8m0"), "one instruction has one"),
        (zeros(2, 64), zeros(2, 64, format="mxfp4"), "one instruction has one format"),
        (np.zeros((2, 64)), zeros(2, 64), "a is an ndarray; need a BlockScaled"),
        (zeros(2, 64), "b", "b is a str; need a BlockScaled"),
    ],
    ids=["K", "batch", "rank", "scales", "format", "A", "B"],
)
def test_operands_that_do_not_fit_are_refused(a: Any, b: Any, rule: str) -> None:
    with pytest.raises(InputError, match=rule):
        matmul(a, b)
