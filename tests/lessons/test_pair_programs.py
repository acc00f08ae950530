"""The programs of notebook 15: right under every schedule, and each fault is named."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest

import fp4ref
from fp4ref.errors import ClusterFault, DeadlockError, ReadWhileInFlight
from fp4ref.hardware import tcgen05
from fp4ref.lessons import pair_programs as pair


@pytest.fixture(scope="module")
def operands() -> list[fp4ref.BlockScaled]:
    rng = np.random.default_rng(2)
    return [
        fp4ref.quantize(rng.standard_normal((rows, 256), np.float32))
        for rows in (256, pair.N)
    ]


def d_of(run: pair.PairRun) -> np.ndarray:
    return np.concatenate([each[:, : pair.N] for each in run.tmem])


@pytest.mark.parametrize("schedule", ["eager", "late", 3])
def test_the_stage_gives_the_product(operands, schedule) -> None:
    want = fp4ref.oracle.expected(*operands).d.view(np.uint32)
    run = pair.run_stage(*operands, schedule=schedule)
    np.testing.assert_array_equal(d_of(run), want)


def test_swapped_halves_of_b_are_seen_in_d_alone(operands) -> None:
    want = fp4ref.oracle.expected(*operands).d.view(np.uint32)
    with patch.object(pair, "half_of_b", lambda warp: 64 * (1 - warp.cta.rank)):
        assert (d_of(pair.run_stage(*operands)) != want).mean() > 0.9


@pytest.mark.parametrize("schedule", ["eager", "late", 3])
def test_bytes_that_each_cta_expects_for_itself_never_come(operands, schedule) -> None:
    """Where the first boxes are as many bytes, the MMA reads what is not there."""
    with (
        patch.object(pair, "expected_nbytes", lambda warp, maps: 28_672),
        pytest.raises((DeadlockError, ReadWhileInFlight)),
    ):
        pair.run_stage(*operands, schedule=schedule)


def test_a_commit_of_the_other_group_is_refused(operands) -> None:
    def other(warp):
        tcgen05.commit(warp, pair.here(warp, pair.DONE), 0b11)

    with (
        patch.object(pair, "commit", other),
        pytest.raises(ClusterFault, match="cta_group::1 in a kernel"),
    ):
        pair.run_stage(*operands)


def test_a_cluster_of_eight_learns_of_the_next_one() -> None:
    _, learned = pair.run_clc()
    assert len(learned) == 8
    assert set(learned.values()) == {(2, 0, 0)}
