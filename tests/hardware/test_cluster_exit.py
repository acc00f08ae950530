"""What peers do to a CTA that has exited, and bytes that the wrong CTA expects.

CUDA programming guide, distributed shared memory: accesses of a CTA's shared memory by
its peers are complete before it exits.
"""

from __future__ import annotations

import numpy as np
import pytest
from on_machine import MBAR, TILE, launch, machine
from order_cases import both, every, found
from tensor_copies import tensor_map

from fp4ref.errors import ClusterFault, DeadlockError, ExitFault
from fp4ref.hardware import clc, cluster, mbarrier, smem, tma
from fp4ref.hardware.order.rules import Failure

PAIR = {"grid": (2, 1, 1), "cluster": (2, 1, 1)}
BOX = 1024
CLUSTER = mbarrier.Semantics(scope="cluster")


def box(on):
    return tensor_map(on, "UINT8", (128, 8), (128, 8))[1]


def start(warp, count=1):
    mbarrier.init(warp, warp.cta.smem_base, count)
    mbarrier.fence_mbarrier_init(warp)
    yield from cluster.wait(warp, cluster.arrive(warp))


def remotely(use, awaited):
    """Rank 0 uses memory of rank 1, which waits for it, or returns."""

    def body(warp):
        yield from start(warp)
        if warp.cta.rank == 0:
            use(warp)
        elif awaited:
            base = warp.cta.smem_base
            yield from mbarrier.try_wait(warp, base, 0, CLUSTER)

    return body


def arrive(warp):
    mbarrier.arrive(warp, cluster.mapa(warp, MBAR, 1), semantics=CLUSTER)


def store(warp):
    smem.st(warp, cluster.mapa(warp, TILE, 1), np.zeros(16, np.uint8))
    arrive(warp)


def multicast(warp):
    """Rank 1 alone receives; its barrier gets the arrival that the bytes belong to."""
    remote = cluster.mapa(warp, MBAR, 1)
    mbarrier.arrive_expect_tx(warp, remote, BOX, semantics=CLUSTER)
    tma.load(warp, warp.machine.tensor_map, (0, 0), TILE, MBAR, 0b10)


USES = {"arrive": arrive, "store": store, "multicast": multicast}


@both
@every
@pytest.mark.parametrize("use", USES)
def test_a_cta_that_waits_for_its_peer_may_exit(use, schedule, ordering):
    options = {"schedule": schedule, "ordering": ordering, "sms": 2} | PAIR
    seen, _ = found(remotely(USES[use], True), prepare=box, **options)
    assert seen == set()


@both
@every
@pytest.mark.parametrize("use", USES)
def test_a_cta_that_does_not_wait_is_named_under_every_schedule(
    use, schedule, ordering
):
    """Either the use comes too late, or nothing orders it before the exit."""
    options = {"schedule": schedule, "ordering": ordering, "sms": 2} | PAIR
    try:
        seen, _ = found(remotely(USES[use], False), prepare=box, **options)
    except (ClusterFault, ExitFault):
        return
    severity = "error" if ordering == "ptx" else "allowed"
    assert (Failure.EXIT, severity) in seen


def after_exit(use):
    """Rank 1 returns; rank 0 uses its memory then."""

    def body(warp):
        yield from start(warp)
        if warp.cta.rank == 0:
            yield from cluster.wait(warp, cluster.arrive(warp))
            use(warp)

    return body


LATE = USES | {
    "load": lambda w: smem.ld(w, cluster.mapa(w, TILE, 1), 8),
    "expect": lambda w: mbarrier.expect_tx(w, cluster.mapa(w, MBAR, 1), 16),
    "answer": lambda w: clc.try_cancel(w, TILE, MBAR, multicast=True),
}


@pytest.mark.parametrize("use", LATE)
def test_memory_of_an_exited_cta_is_gone(use):
    on = machine(sms=2)
    on.tensor_map = box(on)
    with pytest.raises(ClusterFault, match=r"cta \(1, 0, 0\) that has exited"):
        launch(on, after_exit(LATE[use]), **PAIR)


@both
@every
@pytest.mark.parametrize("relaxed", [True, False])
def test_a_relaxed_barrier_orders_nothing_before_an_exit(relaxed, schedule, ordering):
    """The arrival has come, but no wait of the exiting CTA has seen it."""

    def body(warp):
        yield from start(warp)
        if warp.cta.rank == 0:
            arrive(warp)
        yield from cluster.wait(warp, cluster.arrive(warp, relaxed=relaxed))

    options = {"schedule": schedule, "ordering": ordering, "sms": 2} | PAIR
    seen, _ = found(body, **options)
    severity = "error" if ordering == "ptx" else "allowed"
    assert seen == ({(Failure.EXIT, severity)} if relaxed else set())


def test_an_address_in_an_exited_cta_may_still_be_formed():
    seen = []

    def use(warp):
        seen.append(cluster.mapa(warp, MBAR, 1))

    launch(machine(sms=2), after_exit(use), **PAIR)
    assert seen == [0x01000400]


def test_a_multicast_in_flight_into_a_cta_that_exits():
    """Rank 0 ends the wait of rank 1 itself, and the bytes are still on their way."""

    def body(warp):
        yield from start(warp)
        if warp.cta.rank == 0:
            tma.load(warp, warp.machine.tensor_map, (0, 0), TILE, MBAR, 0b11)
        yield from cluster.wait(warp, cluster.arrive(warp))
        if warp.cta.rank == 0:
            mbarrier.arrive_expect_tx(warp, MBAR, BOX)
            yield from mbarrier.try_wait(warp, MBAR, 0)

    on = machine("late", sms=2)
    on.tensor_map = box(on)
    with pytest.raises(ExitFault, match=r"cta \(1, 0, 0\), which it uses") as caught:
        launch(on, body, **PAIR)
    assert caught.value.who == "cta (0, 0, 0) warp0"


# -- bytes that the wrong CTA expects --------------------------------------------------


def pair_loads(expecting):
    """Both load with the leader's barrier; `expecting` waits for all bytes."""

    def body(warp):
        base, rank = warp.cta.smem_base, warp.cta.rank
        yield from start(warp)
        if rank == expecting:
            mbarrier.arrive_expect_tx(warp, base, 2 * BOX)
        m = warp.machine.tensor_map
        tma.load(warp, m, (0, 0), base - MBAR + TILE, MBAR, None, 2)
        if rank == expecting:
            yield from mbarrier.try_wait(warp, base, 0)
        yield from cluster.wait(warp, cluster.arrive(warp))

    return body


@every
@pytest.mark.parametrize("trace", [True, False])
def test_the_root_names_the_cta_that_expects_and_the_one_that_receives(schedule, trace):
    on = machine(schedule, sms=2, trace=trace)
    on.tensor_map = box(on)
    with pytest.raises(DeadlockError) as caught:
        launch(on, pair_loads(1), **PAIR)
    root = caught.value.root
    assert "2,048 bytes are expected by cta (1, 0, 0), rank 1" in root.what
    assert "come to this barrier in cta (0, 0, 0), rank 0" in root.what
    assert root.by == "cta (1, 0, 0) warp0"
    assert "the one of the pair whose barrier the load names" in root.remedy


def test_each_cta_that_expects_its_own_half_is_wrong_about_the_pair():
    """The peer's half is missed where the leader waits, too."""

    def body(warp):
        base, rank = warp.cta.smem_base, warp.cta.rank
        yield from start(warp)
        mbarrier.arrive_expect_tx(warp, base, BOX)
        if rank == 1:
            m = warp.machine.tensor_map
            tma.load(warp, m, (0, 0), base - MBAR + TILE, MBAR, None, 2)
            tma.load(warp, m, (0, 0), base - MBAR + TILE + BOX, MBAR, None, 2)
        yield from mbarrier.try_wait(warp, base, 0)
        yield from cluster.wait(warp, cluster.arrive(warp))

    on = machine("late", sms=2)
    on.tensor_map = box(on)
    with pytest.raises(DeadlockError, match=r"1,024 bytes are expected by cta \(1"):
        launch(on, body, **PAIR)
