"""disable-output-lane: the other lanes get what they get without it."""

from __future__ import annotations

import numpy as np
import pair_tiles
import pytest
from on_machine import launch, machine
from test_mma_unscaled import (
    A_AT,
    B_AT,
    commit_and_wait,
    descriptor,
    idesc,
    put_memory,
    with_tmem,
)

from fp4ref.errors import (
    DescriptorFault,
    NotModelled,
    ReadWhileInFlight,
    UninitialisedRead,
)
from fp4ref.hardware import mma_unscaled, tmem

N, COLUMN = 24, 40
RANDOM = np.random.default_rng(6).integers(0, 1 << 32, 4, np.uint64)
MASKS = {
    "one lane": (0, 1 << 7, 0, 0),
    "first and last": (1, 0, 0, 1 << 31),
    "a quarter": (0, 0xFFFFFFFF, 0, 0),
    "random": tuple(int(word) for word in RANDOM),
    "all": (0xFFFFFFFF,) * 4,
}


def disabled(mask):
    """Lanes whose bit is 1, by PTX's words."""
    return np.array([bool(mask[lane // 32] >> lane % 32 & 1) for lane in range(128)])


def product(mask, *, accumulate=True, m=128, lane=0, filled=None, schedule="late"):
    """Cells of D after one MMA, and before; `filled` says which lanes hold values."""
    before = np.random.default_rng(2).standard_normal((128, N)).astype(np.float32)
    filled = np.ones(128, bool) if filled is None else filled
    got = []

    def steps(warp):
        for each in np.flatnonzero(filled):
            warp.tmem.poke(each * 2048 + 4 * COLUMN, before[each].view(np.uint8))
        mma_unscaled.mma(
            warp,
            lane << 16 | COLUMN,
            descriptor(A_AT),
            descriptor(B_AT),
            idesc(N, m=m),
            accumulate,
            disable_output_lanes=mask,
        )
        yield from commit_and_wait(warp)
        got.append(warp.tmem.cells[:, COLUMN : COLUMN + N].copy())

    launch(machine(schedule), with_tmem(steps), setup=put_memory)
    return got[0], before.view(np.uint32)


@pytest.mark.parametrize("schedule", ["eager", "late", 1])
@pytest.mark.parametrize("accumulate", [True, False])
@pytest.mark.parametrize("name", MASKS)
def test_disabled_lanes_keep_what_they_hold(name, accumulate, schedule):
    mask = MASKS[name]
    found, before = product(mask, accumulate=accumulate, schedule=schedule)
    whole, _ = product((), accumulate=accumulate)
    stay = disabled(mask)
    np.testing.assert_array_equal(found[stay], before[stay])
    np.testing.assert_array_equal(found[~stay], whole[~stay])
    assert not (whole == before).all(axis=1).any()


@pytest.mark.parametrize("lane", [0, 16])
def test_of_64_rows_the_bits_are_lanes_of_tmem(lane):
    mask = MASKS["random"]
    found, before = product(mask, m=64, lane=lane)
    whole, _ = product((), m=64, lane=lane)
    stay = disabled(mask) | (np.arange(128) // 16 % 2 != lane // 16)
    np.testing.assert_array_equal(found[stay], before[stay])
    np.testing.assert_array_equal(found[~stay], whole[~stay])


def test_a_disabled_lane_needs_no_value():
    mask = MASKS["random"]
    stay = disabled(mask)
    found, _ = product(mask, filled=~stay)
    whole, _ = product(())
    np.testing.assert_array_equal(found[~stay], whole[~stay])
    with pytest.raises(UninitialisedRead):
        product(MASKS["one lane"], filled=~stay)


def test_a_disabled_lane_may_be_read_while_the_mma_runs():
    """No access of it is in flight, for the order of accesses neither."""

    def product(load):
        def steps(warp):
            words = np.zeros((32, N), np.uint32)
            tmem.st(warp, COLUMN, words[:, :16], "32x32b", 16)
            tmem.st(warp, COLUMN + 16, words[:, 16:], "32x32b", 8)
            yield from tmem.wait_st(warp)
            mma_unscaled.mma(
                warp,
                COLUMN,
                descriptor(A_AT),
                descriptor(B_AT),
                idesc(N),
                False,
                disable_output_lanes=(0xFFFFFFFF if load else 0, 0, 0, 0),
            )
            registers = tmem.ld(warp, COLUMN, "32x32b", 16)
            yield from tmem.wait_ld(warp)
            assert not registers.words.any()
            yield from commit_and_wait(warp)

        on = machine("late", races="raise")
        launch(on, with_tmem(steps), setup=put_memory)

    product(True)
    with pytest.raises(ReadWhileInFlight, match=r"tcgen05\.mma in flight"):
        product(False)


def test_a_mask_has_a_word_for_32_lanes():
    with pytest.raises(DescriptorFault, match="of 8 words with cta_group::1"):
        product((0,) * 8)


def test_lanes_of_a_pair_are_in_the_list():
    def mma(warp):
        mma_unscaled.mma(
            warp,
            0,
            pair_tiles.descriptor(pair_tiles.A_AT),
            pair_tiles.descriptor(pair_tiles.B_AT),
            idesc(32, m=256),
            False,
            cta_group=2,
            disable_output_lanes=(1,) * 8,
        )

    body = pair_tiles.in_pair(pair_tiles.by_leader(mma))
    with pytest.raises(NotModelled, match="cta_group::2 with disable") as found:
        pair_tiles.run_pair(body, memory=pair_tiles.memories())
    assert found.value.gap == "mma-disable-output-lane"
