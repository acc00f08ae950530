"""clc: answers, their layout, stealing of tiles, and dependent launch."""

from __future__ import annotations

import numpy as np
import pytest
from on_machine import BASE, MBAR, TILE, launch, machine

from fp4ref.errors import ClusterFault, DeadlockError, MisalignedAddress
from fp4ref.hardware import clc, cluster, mbarrier, smem
from fp4ref.hardware.clc import ClcFault


def words(*values):
    return np.array(values, "<u4").view(np.uint8)


def test_layout_of_an_answer():
    """word0 ctaid.x; word1 y | z << 16; word2 bit 0 the flag."""
    answer = clc.encode_response((0x12345, 0x67, 0x89))
    np.testing.assert_array_equal(answer, words(0x12345, 0x0089_0067, 1, 0))
    assert clc.is_canceled(answer)
    assert clc.get_first_ctaid(answer) == (0x12345, 0x67, 0x89)
    assert not clc.is_canceled(clc.encode_response(None))
    assert not clc.is_canceled(words(5, 6, 2, 9))


def test_no_coordinates_in_a_refusal():
    with pytest.raises(ClcFault, match="test is_canceled first"):
        clc.get_first_ctaid(clc.encode_response(None))


def worker(done, extra=False):
    """Work on the own tile, then on whatever CLC hands over."""

    def body(warp):
        base = warp.cta.smem_base
        mbarrier.init(warp, base, 1)
        tile, parity = warp.cta.ctaid, 0
        while True:
            done.append((warp.cta.ctaid, tile))
            assert len(done) <= 12, "a tile is handed out twice"
            mbarrier.arrive_expect_tx(warp, base, 16)
            clc.try_cancel(warp, base + 0x400, base)
            yield from mbarrier.try_wait(warp, base, parity)
            parity ^= 1
            answer = smem.ld(warp, base + 0x400, 16)
            smem.fence_proxy_async(warp)
            if not clc.is_canceled(answer):
                break
            tile = clc.get_first_ctaid(answer)
        if extra:
            clc.try_cancel(warp, base + 0x400, base)

    return body


@pytest.mark.parametrize("schedule", ["eager", "late", *range(10)])
@pytest.mark.parametrize("sms", [1, 2, 3])
def test_more_tiles_than_sms_every_tile_once(schedule, sms):
    done = []
    on = launch(machine(schedule, sms=sms), worker(done), grid=(3, 2, 2))
    tiles = [(x, y, z) for z in range(2) for y in range(2) for x in range(3)]
    assert sorted(tile for _, tile in done) == sorted(tiles)
    assert on.stats["clc.canceled"] == 12 - on.stats["cta"]
    assert not on.pending


def test_one_sm_takes_over_all_the_rest():
    done = []
    on = launch(machine(), worker(done), grid=(4, 1, 1))
    assert done == [((0, 0, 0), (x, 0, 0)) for x in range(4)]
    assert on.stats["cta"] == 1


def test_clusters_are_handed_over_whole():
    answers = []

    def body(warp):
        base = warp.cta.smem_base
        mbarrier.init(warp, base, 1)
        yield from cluster.wait(warp, cluster.arrive(warp))
        if warp.cta.rank == 0:
            mbarrier.arrive_expect_tx(warp, base, 16)
            clc.try_cancel(warp, base + 0x400, base)
            yield from mbarrier.try_wait(warp, base, 0)
            answers.append(clc.get_first_ctaid(smem.ld(warp, base + 0x400, 16)))

    on = launch(machine(sms=2), body, grid=(4, 1, 1), cluster=(2, 1, 1))
    assert answers == [(2, 0, 0)]
    assert on.stats["cta"] == 2


def test_request_after_an_observed_failure():
    with pytest.raises(ClcFault, match="stop asking when is_canceled is false"):
        launch(machine(), worker([], extra=True), grid=(2, 1, 1))


def test_request_before_the_failure_is_seen_is_legal():
    def body(warp):
        mbarrier.init(warp, MBAR, 1)
        mbarrier.arrive_expect_tx(warp, MBAR, 32)
        clc.try_cancel(warp, TILE, MBAR)
        clc.try_cancel(warp, TILE + 16, MBAR)
        yield from mbarrier.try_wait(warp, MBAR, 0)
        for slot in (0, 16):
            assert not clc.is_canceled(smem.ld(warp, TILE + slot, 16))

    for schedule in ("eager", "late", 3):
        launch(machine(schedule), body)


def test_the_answer_counts_16_bytes():
    def body(warp):
        mbarrier.init(warp, MBAR, 1)
        mbarrier.arrive_expect_tx(warp, MBAR, 8)
        clc.try_cancel(warp, TILE, MBAR)
        yield from mbarrier.try_wait(warp, MBAR, 0)

    with pytest.raises(DeadlockError, match="tx-count -8"):
        launch(machine(), body)


def test_misaligned_answer():
    with pytest.raises(MisalignedAddress, match="16-byte aligned"):
        launch(machine(), lambda w: clc.try_cancel(w, BASE + 8, MBAR))


def test_remote_answer():
    def body(warp):
        clc.try_cancel(warp, cluster.mapa(warp, TILE, 1), MBAR)

    with pytest.raises(ClusterFault, match=r"\.shared::cta"):
        launch(machine(sms=2), body, grid=(2, 1, 1), cluster=(2, 1, 1))


def test_griddepcontrol():
    def body(warp):
        yield from clc.griddepcontrol_wait(warp)
        assert not warp.machine.dependents_launched
        clc.griddepcontrol_launch_dependents(warp)
        assert warp.machine.dependents_launched

    on = launch(machine(), body)
    launch(on, body)
