"""cta_pair: what two CTAs allocate, issue and free together, and what they must not."""

from __future__ import annotations

import numpy as np
import pytest
from mma_tiles import SF_WORD
from on_machine import MBAR, TILE, launch, machine
from pair_tiles import (
    A_AT,
    B_AT,
    BASE,
    PAIR,
    SF_AT,
    by_leader,
    descriptor,
    in_pair,
    memories,
    put,
    run_pair,
    sync,
)
from test_pair_mma import unscaled_idesc

from fp4ref.errors import (
    ClusterFault,
    ExitFault,
    ReadWhileInFlight,
    TmemAllocationFault,
)
from fp4ref.hardware import cluster, mbarrier, mma_unscaled, smem, tcgen05, tmem
from fp4ref.hardware.order.race import RaceFault
from fp4ref.hardware.order.rules import Failure

SCHEDULES = ["eager", "late", 1, 2, 3, 4]


def address_of(warp):
    """The TMEM address that the alloc wrote to shared memory."""
    at = warp.cta.smem_base + 8
    return int(warp.smem.data[8:12].view(np.uint32)[0]), at


def alloc(warp, columns=64):
    return tmem.alloc(warp, warp.cta.smem_base + 8, columns, 2)


def one_mma(warp, d=0, n=32, m=256):
    mma_unscaled.mma(
        warp,
        d,
        descriptor(A_AT),
        descriptor(B_AT),
        unscaled_idesc(n, m, 1),
        False,
        cta_group=2,
    )


# -- allocation


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_both_ctas_get_the_same_columns_in_their_own_memories(schedule):
    seen = {0: [], 1: []}

    def body(warp):
        rank = warp.cta.rank
        if rank == 1:
            yield from sync(warp)
        for columns in (128, 64):
            yield from alloc(warp, columns)
            seen[rank].append(address_of(warp)[0])
        if rank == 0:
            yield from sync(warp)
        yield from sync(warp)
        assert warp.tmem.allocated == 192
        for taddr, columns in zip(seen[rank], (128, 64), strict=True):
            tmem.dealloc(warp, taddr, columns, 2)
        tmem.relinquish_alloc_permit(warp, 2)

    on = run_pair(body, schedule=schedule)
    assert seen == {0: [0, 128], 1: [0, 128]}
    assert [sm.tmem.allocated + sm.tmem.held for sm in on.sms] == [0, 0]


def test_columns_are_free_when_the_second_cta_has_freed_them():
    def body(warp):
        yield from alloc(warp, 512)
        yield from sync(warp)
        if warp.cta.rank == 0:
            tmem.dealloc(warp, 0, 512, 2)
            yield from sync(warp)
            assert warp.tmem.find_free(32) is None
        else:
            yield from sync(warp)
            tmem.dealloc(warp, 0, 512, 2)
        # Waits, in both CTAs, for what the other one frees.
        yield from alloc(warp, 512)
        yield from sync(warp)
        tmem.dealloc(warp, 0, 512, 2)

    for schedule in SCHEDULES:
        run_pair(body, schedule=schedule)


def test_a_cta_may_exit_after_its_dealloc():
    """PTX: warps can exit at once after deallocating tensor memory."""

    def body(warp):
        yield from alloc(warp)
        yield from sync(warp)
        tmem.dealloc(warp, 0, 64, 2)

    for schedule in SCHEDULES:
        run_pair(body, schedule=schedule)


def test_both_ask_for_the_same_number_of_columns():
    def body(warp):
        yield from alloc(warp, 64 << warp.cta.rank)
        yield from sync(warp)

    with pytest.raises(TmemAllocationFault, match=r"where cta .* asked for"):
        run_pair(body)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_b31_dealloc_before_the_peers_alloc(schedule):
    """cutlass#3435: a launch failure, unless a cluster barrier lies in between."""

    def body(warp):
        yield from alloc(warp)
        tmem.dealloc(warp, 0, 64, 2)

    with pytest.raises((TmemAllocationFault, RaceFault)) as caught:
        run_pair(body, schedule=schedule, trace=True)
    if isinstance(caught.value, TmemAllocationFault):
        assert "before cta" in str(caught.value)
        assert "has executed its tcgen05.alloc" in str(caught.value)
    else:
        (race,) = {(r.first.operation, r.second.operation) for r in caught.value.races}
        assert race == ("tcgen05.alloc", "tcgen05.dealloc")


def test_b31_is_a_fault_where_the_peer_has_not_come_so_far():
    """Without an order of accesses: neither alloc waits for the other."""

    def body(warp):
        yield from alloc(warp)
        tmem.dealloc(warp, 0, 64, 2)

    with pytest.raises(TmemAllocationFault) as caught:
        run_pair(body, schedule="eager")
    assert "before cta (1, 0, 0), the peer, has executed" in str(caught.value)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("reader", [0, 1])
def test_accesses_of_both_come_before_the_dealloc_of_either(schedule, reader):
    def body(warp, barrier):
        yield from alloc(warp)
        yield from sync(warp)
        if warp.cta.rank == reader:
            words = np.zeros((32, 1), np.uint32)
            tmem.st(warp, 0, words)
            yield from tmem.wait_st(warp)
            tcgen05.fence_before_thread_sync(warp)
        if barrier:
            yield from sync(warp)
        tcgen05.fence_after_thread_sync(warp)
        tmem.dealloc(warp, 0, 64, 2)

    run_pair(lambda w: body(w, True), schedule=schedule, trace=True)
    with pytest.raises(RaceFault) as caught:
        run_pair(lambda w: body(w, False), schedule=schedule, trace=True)
    assert {race.failure for race in caught.value.races} == {Failure.PEER}
    on = run_pair(
        lambda w: body(w, False), schedule=schedule, trace=True, ordering="shipped"
    )
    assert on.order.findings.verdict != "error"


def test_columns_of_a_pair_are_freed_before_exit():
    def leak(warp):
        yield from alloc(warp)
        yield from sync(warp)

    def alone(warp):
        if warp.cta.rank == 1:
            yield from alloc(warp)
        yield from sync(warp)

    def one_frees(warp):
        yield from alloc(warp)
        yield from sync(warp)
        if warp.cta.rank == 0:
            tmem.dealloc(warp, 0, 64, 2)

    with pytest.raises(ExitFault, match="64 TMEM columns are allocated at exit"):
        run_pair(leak)
    with pytest.raises(ExitFault, match="64 TMEM columns are allocated at exit"):
        run_pair(alone)
    with pytest.raises(ExitFault, match="freed by one CTA of a pair only"):
        run_pair(one_frees)


def test_columns_that_the_peer_alone_freed_are_no_more_in_use():
    def body(warp):
        yield from alloc(warp)
        yield from sync(warp)
        if warp.cta.rank == 1:
            tmem.dealloc(warp, 0, 64, 2)
        yield from sync(warp)
        if warp.cta.rank == 0:
            one_mma(warp)

    with pytest.raises(TmemAllocationFault, match="not all allocated"):
        run_pair(body, memory=memories())


# -- who issues, and for whom


@pytest.mark.parametrize("schedule", ["eager", "late"])
@pytest.mark.parametrize("issuer", [0, 1])
def test_a_thread_of_either_cta_may_issue(issuer, schedule):
    """PTX, issue granularity: a single thread from the CTA pair."""
    got = {}

    def steps(warp):
        base = warp.cta.smem_base
        if warp.cta.rank == issuer:
            one_mma(warp)
            tcgen05.commit(warp, base, 0b11, 2)
        yield from mbarrier.try_wait(warp, base, 0)
        got[warp.cta.rank] = warp.tmem.cells[:, :32].copy()

    on = run_pair(in_pair(steps), memory=memories(), schedule=schedule)
    want = {}

    def leader(warp):
        yield from by_leader(one_mma)(warp)
        want[warp.cta.rank] = warp.tmem.cells[:, :32].copy()

    run_pair(in_pair(leader), memory=memories())
    for rank in (0, 1):
        np.testing.assert_array_equal(got[rank], want[rank])
    assert on.stats["tcgen05.mma"] == 1


def test_a_pair_is_two_ranks_that_differ_in_the_last_bit():
    """Ranks 0, 1 and 2, 3 of a cluster of 4: each pair multiplies for itself."""
    memory, got = memories(), {}

    def steps(warp):
        rank = warp.cta.rank
        base = warp.cta.smem_base
        if rank % 2 == 0:
            one_mma(warp)
            tcgen05.commit(warp, base, 0b11 << rank, 2)
        yield from mbarrier.try_wait(warp, base, 0)
        got[rank] = warp.tmem.cells[:, :32].copy()

    on = machine("late", sms=4)
    grid = {"grid": (4, 1, 1), "cluster": (4, 1, 1)}
    launch(on, in_pair(steps), setup=put(memory), **grid)
    for rank in (0, 1):
        np.testing.assert_array_equal(got[rank], got[rank + 2])
    assert (got[0] != got[1]).any()


@pytest.mark.parametrize(
    "operation",
    [
        lambda w: tmem.alloc(w, MBAR + 8, 32, 2),
        lambda w: tmem.relinquish_alloc_permit(w, 2),
        lambda w: tcgen05.commit(w, MBAR, None, 2),
        one_mma,
    ],
)
def test_the_odd_cta_at_the_end_of_a_cluster_has_no_peer(operation):
    def body(warp):
        if warp.cta.rank == 2:
            yield from operation(warp) or ()

    with pytest.raises(ClusterFault, match="rank 2 has no peer"):
        launch(machine(sms=3), body, grid=(3, 1, 1), cluster=(3, 1, 1))


def test_one_group_for_a_whole_kernel():
    def body(warp):
        yield from alloc(warp)
        yield from sync(warp)
        tcgen05.commit(warp, MBAR)

    with pytest.raises(ClusterFault) as caught:
        run_pair(body)
    assert "tcgen05.commit.cta_group::1 in a kernel" in str(caught.value)
    assert "tcgen05.alloc.cta_group::2 by cta (" in str(caught.value)


def test_the_next_kernel_may_use_the_other_group():
    freed = []

    def body(warp, group):
        yield from tmem.alloc(warp, warp.cta.smem_base + 8, 32, group)
        yield from sync(warp)
        tmem.dealloc(warp, 0, 32, group)
        freed.append(group)

    on = machine(sms=2)
    for group in (1, 2, 1):
        launch(on, lambda w, g=group: body(w, g), **PAIR)
    assert freed == [1, 1, 2, 2, 1, 1]


def test_the_peer_of_an_issuer_has_not_exited():
    def body(warp):
        mbarrier.init(warp, warp.cta.smem_base, 1)
        yield from sync(warp)
        if warp.cta.rank == 0:
            yield from mbarrier.try_wait(warp, MBAR, 1)
            for _ in range(5):
                mbarrier.arrive(warp, MBAR)
                yield from mbarrier.try_wait(warp, MBAR, 0)
                mbarrier.arrive(warp, MBAR)
                yield from mbarrier.try_wait(warp, MBAR, 1)
            tcgen05.commit(warp, MBAR, None, 2)

    def last(warp):
        """The even CTA goes on only when its peer has returned."""
        yield from sync(warp)
        if warp.cta.rank == 0:
            yield Exited(warp.cta.cluster.ctas[1])
            tcgen05.commit(warp, MBAR, None, 2)

    with pytest.raises(ClusterFault, match="after the peer has exited"):
        run_pair(last)


class Exited:
    """Waits, unlike any instruction, until all warps of a CTA have returned."""

    def __init__(self, cta):
        self.cta = cta

    def ready(self):
        return self.cta.finished

    def describe(self):
        return "exit of the peer"

    def released_by(self):
        return "the peer"


@pytest.mark.parametrize("schedule", ["eager", "late"])
@pytest.mark.parametrize("issuer", [0, 1])
def test_cp_copies_in_each_cta_from_its_own_memory(issuer, schedule):
    memory, got = memories(), {}

    def steps(warp):
        base = warp.cta.smem_base
        if warp.cta.rank == issuer:
            tcgen05.cp(warp, 12, SF_WORD | SF_AT >> 4, cta_group=2)
            tcgen05.commit(warp, base, 0b11, 2)
        yield from mbarrier.try_wait(warp, base, 0)
        got[warp.cta.rank] = warp.tmem.cells[:, 12:16].copy()

    run_pair(in_pair(steps), memory=memory, schedule=schedule)
    for rank in (0, 1):
        rows = memory[rank][SF_AT - TILE :][:512].view(np.uint32).reshape(32, 4)
        np.testing.assert_array_equal(got[rank], np.tile(rows, (4, 1)))


def test_a_commit_of_a_pair_reaches_any_cta_of_the_cluster():
    """One arrival in each CTA of the mask, or at the named mbarrier alone."""

    def steps(warp):
        base = warp.cta.smem_base
        if warp.cta.rank == 2:
            one_mma(warp)
            tcgen05.commit(warp, base, 0b1001, 2)
        if warp.cta.rank in (0, 3):
            yield from mbarrier.try_wait(warp, base, 0)
        if warp.cta.rank == 2:
            tcgen05.commit(warp, cluster.mapa(warp, MBAR, 1), None, 2)
        if warp.cta.rank == 1:
            yield from mbarrier.try_wait(warp, base, 0)
            assert warp.cta.cluster.ctas[2].mbarriers.completed.get(MBAR, 0) == 0

    on = machine("late", sms=4)
    grid = {"grid": (4, 1, 1), "cluster": (4, 1, 1)}
    launch(on, in_pair(steps), setup=put(memories()), **grid)


# -- what is in use, in both CTAs


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("fenced", [True, False])
def test_the_commit_gives_operands_back_in_both_ctas(schedule, fenced):
    """To ordinary stores too, after a proxy fence of each CTA for its own memory."""

    def steps(warp):
        yield from by_leader(one_mma)(warp)
        if fenced:
            smem.fence_proxy_async(warp)
        for at in (A_AT, B_AT):
            smem.st(warp, warp.cta.smem_base - BASE + at, np.zeros(16, np.uint8))

    def run():
        run_pair(in_pair(steps), memory=memories(), schedule=schedule, trace=True)

    if fenced:
        run()
        return
    with pytest.raises(RaceFault) as caught:
        run()
    assert {race.failure for race in caught.value.races} == {Failure.BRIDGE}


@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize("at", [A_AT, B_AT])
def test_operands_of_both_ctas_are_in_use_until_the_commit(rank, at):
    def steps(warp):
        if warp.cta.rank == 0:
            one_mma(warp)
            other = warp.cta.cluster.ctas[rank]
            other.smem.write(
                tmem.Range(other.smem.space, at, 16), np.zeros((1, 16), np.uint8)
            )

    with pytest.raises(ReadWhileInFlight, match=f"smem{rank} "):
        run_pair(in_pair(steps), memory=memories())


@pytest.mark.parametrize("rank", [0, 1])
def test_accumulators_of_both_ctas_are_in_use_until_the_commit(rank):
    def steps(warp):
        if warp.cta.rank == 0:
            one_mma(warp)
        yield from sync(warp)
        if warp.cta.rank == rank:
            tmem.ld(warp, 0)

    with pytest.raises(ReadWhileInFlight, match=f"tmem{rank} lane 0"):
        run_pair(in_pair(steps), memory=memories())


def test_the_trace_has_the_bytes_of_both_ctas():
    def steps(warp):
        yield from by_leader(one_mma)(warp)

    on = run_pair(in_pair(steps), memory=memories(), trace=True)
    (landing,) = [
        e
        for e in on.recorder.trace
        if e.kind == "land" and e.operation == "tcgen05.mma"
    ]
    assert landing.sm == 0
    assert landing.operands["cta_group"] == 2
    assert {r.space for r in landing.reads} == {"smem0", "smem1"}
    assert {w.space for w in landing.writes} == {"tmem0", "tmem1"}
    assert sum(w.size for w in landing.writes) == 256 * 32 * 4
    # 128 rows of A and 16 of B in each CTA.
    spans = sorted((r.space, r.start - TILE) for r in landing.reads)
    assert spans == [
        (f"smem{rank}", at - TILE) for rank in (0, 1) for at in (A_AT, B_AT)
    ]
