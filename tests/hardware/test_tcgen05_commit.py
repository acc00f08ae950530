"""tcgen05: commit."""

from __future__ import annotations

import pytest
from mma_tiles import (
    A_AT,
    B_AT,
    SF_AT,
    SF_WORD,
    SFA,
    SFB,
    commit_and_wait,
    descriptor,
    easy_mma,
    easy_scales,
    idesc,
    landing_order,
    put_memory,
    with_tmem,
)
from on_machine import MBAR, launch, machine

from fp4ref.errors import (
    ClusterFault,
)
from fp4ref.hardware import cluster, mbarrier, named_barrier, tcgen05, tmem


@pytest.mark.parametrize("schedule", ["late", *range(30)])
def test_commit_comes_after_everything_before_it(schedule):
    def steps(warp):
        for k in range(4):
            tcgen05.cp(warp, SFA + 4 * k, SF_WORD | SF_AT >> 4)
            tcgen05.cp(warp, SFB + 20 + 4 * k, SF_WORD | SF_AT >> 4)
        for k in range(4):
            tcgen05.mma(
                warp,
                0,
                descriptor(A_AT) + 2 * k,
                descriptor(B_AT) + 2 * k,
                idesc(),
                SFA + 4 * k,
                SFB + 20 + 4 * k,
                k > 0,
            )

    order, _ = landing_order(steps, schedule=schedule)
    assert order[-1] == "tcgen05.commit"
    assert order[-5:-1] == ["tcgen05.mma"] * 4
    assert order[:8] == ["tcgen05.cp"] * 8


@pytest.mark.parametrize("schedule", ["late", *range(10)])
def test_commits_of_one_thread_arrive_in_order(schedule):
    second = MBAR + 16

    def steps(warp):
        mbarrier.init(warp, second, 1)
        mbarrier.fence_mbarrier_init(warp)
        easy_scales(warp)
        easy_mma(warp)
        tcgen05.commit(warp, second)

    def drain(warp):
        return mbarrier.try_wait(warp, second, 0)

    on = machine(schedule, trace=True)
    launch(on, with_tmem(steps, commit_and_wait, drain), setup=put_memory)
    arrivals = [
        e.operands["mbar"]
        for e in on.recorder.trace
        if e.kind == "land" and e.operation == "tcgen05.commit"
    ]
    assert arrivals[0] == second
    assert len(arrivals) == 2


def test_commit_covers_only_its_own_thread():
    """Another warp's commit does not track this warp's MMA."""
    on = machine("late", trace=True)
    second = MBAR + 16

    def issuer(warp):
        mbarrier.init(warp, MBAR, 1)
        mbarrier.init(warp, second, 1)
        mbarrier.fence_mbarrier_init(warp)
        yield from tmem.alloc(warp, MBAR + 8, 512)
        easy_scales(warp)
        easy_mma(warp)
        yield from named_barrier.sync(warp, 1, 64)
        yield from commit_and_wait(warp)
        tmem.dealloc(warp, 0, 512)

    def other(warp):
        yield from named_barrier.sync(warp, 1, 64)
        tcgen05.commit(warp, second)
        yield from mbarrier.try_wait(warp, second, 0)

    launch(on, issuer, other, setup=put_memory)
    landed = [
        (e.operation, e.operands.get("mbar"))
        for e in on.recorder.trace
        if e.kind == "land"
    ]
    assert landed.index(("tcgen05.commit", second)) < landed.index(
        ("tcgen05.mma", None)
    )


def test_commit_to_several_ctas():
    on = machine("late", sms=2)

    def body(warp):
        base = warp.cta.smem_base
        mbarrier.init(warp, base, 1)
        yield from cluster.wait(warp, cluster.arrive(warp))
        if warp.cta.rank == 0:
            tcgen05.commit(warp, base, 0b11)
        yield from mbarrier.try_wait(warp, base, 0)

    launch(on, body, grid=(2, 1, 1), cluster=(2, 1, 1))


def test_a_commit_of_a_pair_needs_a_peer():
    with pytest.raises(ClusterFault, match=r"commit: rank 0 has no peer"):
        launch(machine(), lambda w: tcgen05.commit(w, MBAR, cta_group=2))
