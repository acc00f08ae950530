"""clc in clusters: one request, and an answer with 16 bytes in every CTA.

PTX: with .multicast::cluster::all the response is written at the same offset of each
CTA of the requesting cluster, and each write completes on that CTA's own mbarrier.
"""

from __future__ import annotations

import numpy as np
import pytest
from on_machine import BASE, MBAR, TILE, launch, machine
from order_cases import both, every, failures

from fp4ref.errors import ClusterFault, DeadlockError, HardwareFault
from fp4ref.hardware import clc, cluster, mbarrier, smem
from fp4ref.hardware.clc import ClcFault
from fp4ref.hardware.order.rules import Failure

EMPTY = MBAR + 8
SLOT = TILE
SHAPES = [(2, 1, 1), (2, 2, 1), (4, 1, 1), (4, 4, 1)]


def scheduler(work):
    """Rank 0 asks; every CTA reads its own answer and gives the slot back to rank 0."""

    def body(warp):
        base, rank = warp.cta.smem_base, warp.cta.rank
        size = len(warp.cta.cluster.ctas)
        mbarrier.init(warp, base, 1)
        mbarrier.init(warp, base + 8, size)
        mbarrier.fence_mbarrier_init(warp)
        yield from cluster.wait(warp, cluster.arrive(warp))
        origin, parity = warp.cta.cluster.ctas[0].ctaid, 0
        while True:
            work.append((warp.cta.ctaid, origin))
            mbarrier.arrive_expect_tx(warp, base, 16)
            if rank == 0:
                # Before the first round nobody holds the slot: parity 1 passes.
                yield from mbarrier.try_wait(warp, base + 8, parity ^ 1, CLUSTER)
                clc.try_cancel(warp, base - MBAR + SLOT, base, multicast=True)
            yield from mbarrier.try_wait(warp, base, parity)
            answer = smem.ld(warp, base - MBAR + SLOT, 16)
            smem.fence_proxy_async(warp)
            mbarrier.arrive(warp, cluster.mapa(warp, EMPTY, 0), semantics=CLUSTER)
            if not clc.is_canceled(answer):
                break
            origin, parity = clc.get_first_ctaid(answer), parity ^ 1
        if rank == 0:
            yield from mbarrier.try_wait(warp, base + 8, parity, CLUSTER)

    return body


CLUSTER = mbarrier.Semantics(scope="cluster")


@both
@every
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_cta_of_a_cluster_learns_of_the_same_clusters(shape, schedule, ordering):
    """Three clusters of work on two clusters of SMs."""
    size = shape[0] * shape[1]
    work = []
    on = machine(schedule, sms=2 * size, ordering=ordering, trace=True)
    grid = (3 * shape[0], shape[1], 1)
    launch(on, scheduler(work), grid=grid, cluster=shape, nonportable=True)
    assert on.stats["cta"] == 2 * size
    assert on.stats["clc.canceled"] == 1
    # 2 clusters ask until they are refused, one of them once more.
    assert on.stats["clusterlaunchcontrol.try_cancel"] == 3
    assert sorted(work) == sorted(
        ((ctaid, origin))
        for origin, ctas in owners(work, shape).items()
        for ctaid in ctas
    )
    assert {origin for _, origin in work} == {(i * shape[0], 0, 0) for i in range(3)}


def owners(work, shape):
    """By cluster of work: all CTAs of the one cluster that does it."""
    first_of = {}
    for ctaid, origin in work:
        first = (ctaid[0] // shape[0] * shape[0], 0, 0)
        assert first_of.setdefault(origin, first) == first
    return {
        origin: [(x + dx, dy, 0) for dy in range(shape[1]) for dx in range(shape[0])]
        for origin, (x, _, _) in first_of.items()
    }


def one_request(expect=16, multicast=True):
    def body(warp):
        base, rank = warp.cta.smem_base, warp.cta.rank
        mbarrier.init(warp, base, 1)
        mbarrier.fence_mbarrier_init(warp)
        yield from cluster.wait(warp, cluster.arrive(warp))
        mbarrier.arrive_expect_tx(warp, base, expect)
        if rank == 1:
            clc.try_cancel(warp, base - MBAR + SLOT, base, multicast)
        yield from mbarrier.try_wait(warp, base, 0)
        answer = smem.ld(warp, base - MBAR + SLOT, 16)
        assert clc.get_first_ctaid(answer) == (2, 0, 0)
        yield from cluster.wait(warp, cluster.arrive(warp))

    return body


WIDE = {"grid": (4, 1, 1), "cluster": (2, 1, 1)}


@every
def test_the_answer_is_at_the_same_offset_of_every_cta(schedule):
    """A rank other than 0 may ask: the words name the cluster's first CTA."""
    on = launch(machine(schedule, sms=2), one_request(), **WIDE)
    want = np.array([2, 0, 1, 0], "<u4").view(np.uint8)
    for sm in on.sms:
        np.testing.assert_array_equal(sm.smem.data[SLOT - BASE :][:16], want)


@every
@pytest.mark.parametrize("expect", [0, 32])
def test_every_barrier_counts_16_bytes(expect, schedule):
    with pytest.raises((DeadlockError, HardwareFault)):
        launch(machine(schedule, sms=2), one_request(expect), **WIDE)


@every
def test_without_multicast_only_the_asker_gets_an_answer(schedule):
    with pytest.raises(DeadlockError, match=r"cta \(0, 0, 0\)"):
        launch(machine(schedule, sms=2), one_request(multicast=False), **WIDE)


def test_a_request_is_one_issue_and_a_landing_for_each_cta():
    on = launch(machine("late", sms=2, trace=True), one_request(), **WIDE)
    name = "clusterlaunchcontrol.try_cancel"
    events = [e for e in on.recorder.trace.events if e.operation == name]
    assert [e.kind for e in events] == ["issue", "land", "land"]
    assert sorted(e.writes[0].space for e in events[1:]) == ["smem0", "smem1"]
    assert sorted(b.space for e in events for b in e.barrier) == ["smem0", "smem1"]


def both_ask():
    """Both CTAs ask for the same slots at once."""

    def body(warp):
        base = warp.cta.smem_base
        mbarrier.init(warp, base, 1)
        mbarrier.fence_mbarrier_init(warp)
        mbarrier.arrive_expect_tx(warp, base, 32)
        yield from cluster.wait(warp, cluster.arrive(warp))
        clc.try_cancel(warp, base - MBAR + SLOT, base, multicast=True)
        yield from mbarrier.try_wait(warp, base, 0)
        yield from cluster.wait(warp, cluster.arrive(warp))

    return body


def test_two_requests_for_one_answer_are_a_fault():
    with pytest.raises(ClcFault, match="awaits another answer"):
        launch(machine("late", sms=2), both_ask(), **WIDE)


@both
@every
def test_two_requests_for_one_answer_are_named_under_every_schedule(schedule, ordering):
    """Where the first answer has landed, nobody has seen that it has."""
    options = {"schedule": schedule, "ordering": ordering, "sms": 2} | WIDE
    try:
        seen = failures(both_ask(), **options)
    except ClcFault:
        return
    assert seen == {Failure.LIFETIME}


def test_a_request_that_finds_nothing_is_final_for_each_cta_that_read_it():
    def body(warp):
        base, rank = warp.cta.smem_base, warp.cta.rank
        mbarrier.init(warp, base, 1)
        mbarrier.fence_mbarrier_init(warp)
        yield from cluster.wait(warp, cluster.arrive(warp))
        mbarrier.arrive_expect_tx(warp, base, 16)
        if rank == 0:
            clc.try_cancel(warp, base - MBAR + SLOT, base, multicast=True)
        yield from mbarrier.try_wait(warp, base, 0)
        assert not clc.is_canceled(smem.ld(warp, base - MBAR + SLOT, 16))
        yield from cluster.wait(warp, cluster.arrive(warp))
        if rank == 1:
            clc.try_cancel(warp, base - MBAR + SLOT + 16, base)

    with pytest.raises(ClcFault, match="stop asking") as caught:
        launch(machine(sms=2), body, grid=(2, 1, 1), cluster=(2, 1, 1))
    assert "cta (1, 0, 0)" in caught.value.who


def test_all_ctas_of_the_cluster_are_there_for_the_answer():
    def asks(warp):
        mbarrier.init(warp, warp.cta.smem_base, 1)
        yield from cluster.wait(warp, cluster.arrive(warp))
        if warp.cta.rank == 1:
            return
        yield from cluster.wait(warp, cluster.arrive(warp))
        clc.try_cancel(warp, TILE, MBAR, multicast=True)

    with pytest.raises(ClusterFault, match=r"cta \(1, 0, 0\) that has exited"):
        launch(machine(sms=2), asks, grid=(2, 1, 1), cluster=(2, 1, 1))
