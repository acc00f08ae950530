"""order: scopes, relaxed operations, barriers, and the life of an mbarrier."""

from __future__ import annotations

import pytest
from on_machine import MBAR
from order_cases import WORD, ZEROS, both, every, failures, found, ready, written

from fp4ref.hardware import cluster, mbarrier, named_barrier, smem, tcgen05
from fp4ref.hardware.mbarrier import Semantics
from fp4ref.hardware.order.rules import Failure

# -- 7: scopes, relaxed operations, bar.arrive ------------------

PAIR = {"grid": (2, 1, 1), "cluster": (2, 1, 1), "sms": 2}


def hand_over(arrival, waiting):
    """Rank 0 writes into rank 1 and arrives there; rank 1 waits and reads."""

    def body(warp):
        if warp.cta.rank == 1:
            mbarrier.init(warp, MBAR | 1 << 24, 1)
            mbarrier.fence_mbarrier_init(warp)
        yield from cluster.wait(warp, cluster.arrive(warp))
        if warp.cta.rank == 0:
            smem.st(warp, cluster.mapa(warp, WORD, 1), ZEROS)
            mbarrier.arrive(warp, cluster.mapa(warp, MBAR, 1), semantics=arrival)
        else:
            yield from mbarrier.try_wait(warp, MBAR | 1 << 24, 0, waiting)
            smem.ld(warp, WORD | 1 << 24, 4)
        yield from cluster.wait(warp, cluster.arrive(warp))

    return body


WIDE, CTA = Semantics(scope="cluster"), Semantics(scope="cta")


@every
@pytest.mark.parametrize(
    ("arrival", "waiting", "expected"),
    [
        (WIDE, WIDE, None),
        (CTA, WIDE, Failure.SCOPE),
        (WIDE, CTA, Failure.SCOPE),
        (Semantics(relaxed=True, scope="cluster"), WIDE, Failure.SYNC),
        (WIDE, Semantics(relaxed=True, scope="cluster"), Failure.ACQUIRE),
    ],
)
def test_an_edge_needs_both_scopes_and_both_halves(
    schedule, arrival, waiting, expected
):
    body = hand_over(arrival, waiting)
    seen = failures(body, schedule=schedule, setup=written, **PAIR)
    assert seen == (set() if expected is None else {expected})


@both
def test_a_scope_that_is_not_named_is_the_cta_in_the_text(ordering):
    body = hand_over(Semantics(), Semantics())
    seen = failures(body, ordering=ordering, setup=written, **PAIR)
    assert seen == ({Failure.SCOPE} if ordering == "ptx" else set())


@every
@pytest.mark.parametrize("fenced", [True, False])
def test_relaxed_operations_order_with_fences(schedule, fenced):
    relaxed = Semantics(relaxed=True, scope="cta")

    def giving(warp):
        yield from ready(warp, 1)
        smem.st(warp, WORD, ZEROS)
        if fenced:
            warp.machine.order.fence(warp.actor, "acq_rel", "cta")
        mbarrier.arrive(warp, MBAR, semantics=relaxed)

    def taking(warp):
        yield from ready(warp)
        yield from mbarrier.try_wait(warp, MBAR, 0, relaxed)
        if fenced:
            warp.machine.order.fence(warp.actor, "acq_rel", "cta")
        smem.ld(warp, WORD, 4)

    seen = failures(giving, taking, schedule=schedule)
    assert seen == (set() if fenced else {Failure.SYNC})


@every
def test_a_wait_for_the_phase_before_learns_nothing_of_this_one(schedule):
    """Parity 1 of a new barrier is over at once, whoever has arrived."""
    silent = Semantics(relaxed=True, scope="cta")

    def giving(warp):
        yield from ready(warp, 2, 1)
        smem.st(warp, WORD, ZEROS)
        mbarrier.arrive(warp, MBAR)
        mbarrier.arrive(warp, MBAR + 8, semantics=silent)

    def taking(warp):
        yield from ready(warp)
        yield from mbarrier.try_wait(warp, MBAR + 8, 0, silent)  # it has arrived
        yield from mbarrier.try_wait(warp, MBAR, 1)
        smem.ld(warp, WORD, 4)
        mbarrier.arrive(warp, MBAR)

    assert Failure.SYNC in failures(giving, taking, schedule=schedule, setup=written)


@every
@pytest.mark.parametrize("writer", [0, 1])
def test_bar_arrive_gives_and_never_takes(schedule, writer):
    def arriving(warp):
        if writer == 0:
            smem.st(warp, WORD, ZEROS)
        named_barrier.arrive(warp, 1, 64)
        if writer == 1:
            smem.ld(warp, WORD, 4)

    def syncing(warp):
        if writer == 1:
            smem.st(warp, WORD, ZEROS)
        yield from named_barrier.sync(warp, 1, 64)
        if writer == 0:
            smem.ld(warp, WORD, 4)

    seen = failures(arriving, syncing, schedule=schedule, setup=written)
    assert seen == ({Failure.SYNC} if writer == 1 else set())


# -- init, inval, live barriers, exit ------------------


@every
@pytest.mark.parametrize("synced", [True, False])
def test_a_barrier_is_used_after_its_init_is_visible(schedule, synced):
    def first(warp):
        mbarrier.init(warp, MBAR, 1)
        if synced:
            yield from named_barrier.sync(warp, 0)
        yield from mbarrier.try_wait(warp, MBAR, 0)

    def second(warp):
        if synced:
            yield from named_barrier.sync(warp, 0)
        else:
            yield Initialised(warp)
        mbarrier.arrive(warp, MBAR)

    seen = failures(first, second, schedule=schedule)
    assert seen == (set() if synced else {Failure.INIT})


class Initialised:
    """Blocks until the init is done, which orders nothing."""

    def __init__(self, warp):
        self.unit = warp.cta.mbarriers

    def ready(self):
        return MBAR in self.unit.live


@every
@both
def test_a_commit_that_the_init_is_in_no_order_with_is_an_error(schedule, ordering):
    def first(warp):
        mbarrier.init(warp, MBAR, 1)
        yield from mbarrier.try_wait(warp, MBAR, 0)

    def second(warp):
        yield Initialised(warp)
        tcgen05.commit(warp, MBAR)

    seen, _ = found(first, second, schedule=schedule, ordering=ordering)
    assert seen == {(Failure.INIT, "error")}


@every
@pytest.mark.parametrize("fenced", [True, False])
def test_a_fence_of_inits_lets_a_relaxed_cluster_barrier_publish_them(schedule, fenced):
    def body(warp):
        mbarrier.init(warp, MBAR | warp.cta.rank << 24, 1)
        if fenced:
            mbarrier.fence_mbarrier_init(warp)
        yield from cluster.wait(warp, cluster.arrive(warp, relaxed=True))
        peer = cluster.mapa(warp, MBAR, 1 - warp.cta.rank)
        mbarrier.arrive(warp, peer)
        yield from cluster.wait(warp, cluster.arrive(warp))

    seen = failures(body, schedule=schedule, **PAIR)
    assert seen == (set() if fenced else {Failure.INIT})


@every
def test_a_fence_of_inits_publishes_nothing_else(schedule):
    def body(warp):
        smem.st(warp, WORD | warp.cta.rank << 24, ZEROS)
        mbarrier.fence_mbarrier_init(warp)
        yield from cluster.wait(warp, cluster.arrive(warp, relaxed=True))
        smem.ld(warp, cluster.mapa(warp, WORD, 1 - warp.cta.rank), 4)
        yield from cluster.wait(warp, cluster.arrive(warp))

    assert failures(body, schedule=schedule, **PAIR) == {Failure.SYNC}


@every
@pytest.mark.parametrize("synced", [True, False])
def test_inval_comes_after_every_other_use(schedule, synced):
    def first(warp):
        yield from ready(warp, 1)
        mbarrier.arrive(warp, MBAR)
        yield from (Peeked(warp) for _ in range(not synced))
        for _ in range(synced):
            yield from named_barrier.sync(warp, 1, 64)
        mbarrier.inval(warp, MBAR)

    def second(warp):
        yield from ready(warp)
        mbarrier.test_wait(warp, MBAR, 0)
        warp.cta.peeked = True
        for _ in range(synced):
            yield from named_barrier.sync(warp, 1, 64)

    seen = failures(first, second, schedule=schedule)
    assert seen == (set() if synced else {Failure.INVAL})


class Peeked:
    """Blocks until the other warp has peeked, which orders nothing."""

    def __init__(self, warp):
        self.cta = warp.cta

    def ready(self):
        return getattr(self.cta, "peeked", False)


@pytest.mark.parametrize("access", ["st", "ld"])
def test_ordinary_bytes_over_a_live_barrier(access):
    def body(warp):
        mbarrier.init(warp, MBAR, 1)
        if access == "st":
            smem.st(warp, MBAR + 4, ZEROS[:1])
        else:
            smem.ld(warp, MBAR, 4)
        mbarrier.inval(warp, MBAR)

    assert Failure.LIVE in failures(body)
