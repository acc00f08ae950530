"""order: completion of asynchronous copies, and the fences of the proxies."""

from __future__ import annotations

import numpy as np
import pytest
from on_machine import MBAR, TILE
from order_cases import WORD, ZEROS, both, box, every, failures, found, ready

from fp4ref.hardware import cluster, gmem, mbarrier, named_barrier, smem, tma
from fp4ref.hardware.order.rules import Failure
from fp4ref.trace import Range

# -- 1, 2: completion is per thread, and of two milestones ------------------


@every
@pytest.mark.parametrize("waiter", [0, 1])
def test_a_wait_group_covers_only_the_thread_that_issued(schedule, waiter):
    def storing(warp):
        smem.st(warp, TILE, np.zeros(128, np.uint8))
        smem.fence_proxy_async(warp)
        tma.store(warp, warp.machine.tensor_map, (0, 0), TILE)
        tma.commit_group(warp)
        if waiter == 0:
            yield from tma.wait_group(warp, 0)
        yield from named_barrier.sync(warp, 1, 64)
        yield from tma.wait_group(warp, 0)

    def writing(warp):
        if waiter == 1:
            yield from tma.wait_group(warp, 0)
        yield from named_barrier.sync(warp, 1, 64)
        smem.st(warp, TILE, ZEROS)

    seen = failures(storing, writing, schedule=schedule, prepare=box)
    assert (Failure.LIFETIME in seen) is (waiter == 1)


@every
@pytest.mark.parametrize("read", [True, False])
def test_a_read_wait_publishes_the_source_but_not_the_result(schedule, read):
    def body(warp):
        smem.st(warp, TILE, np.zeros(128, np.uint8))
        smem.fence_proxy_async(warp)
        m = warp.machine.tensor_map
        tma.store(warp, m, (0, 0), TILE)
        tma.commit_group(warp)
        yield from tma.wait_group(warp, 0, read=read)
        smem.st(warp, TILE, ZEROS)
        gmem.ld(warp, Range("gmem", m.address, 4))

    seen = failures(body, schedule=schedule, prepare=box)
    assert seen == ({Failure.LIFETIME} if read else set())


# -- 3: own bytes only; fences are explicit, of their thread and of their space ------


@every
@pytest.mark.parametrize("before", [True, False])
def test_a_bulk_copy_carries_its_own_bytes_only(schedule, before):
    def issuing(warp):
        yield from ready(warp, 1)
        if before:
            smem.st(warp, WORD, ZEROS)
        mbarrier.arrive_expect_tx(warp, MBAR, 128)
        if not before:
            smem.st(warp, WORD, ZEROS)
        tma.load(warp, warp.machine.tensor_map, (0, 0), TILE, MBAR)

    def reading(warp):
        yield from ready(warp)
        yield from mbarrier.try_wait(warp, MBAR, 0)
        smem.ld(warp, TILE, 4)
        smem.ld(warp, WORD, 4)

    seen = failures(issuing, reading, schedule=schedule, prepare=box)
    assert seen == (set() if before else {Failure.SYNC})


@every
@both
@pytest.mark.parametrize("fenced", [True, False])
def test_a_read_before_an_async_overwrite_needs_a_proxy_fence(
    schedule, ordering, fenced
):
    def loading(warp):
        yield from ready(warp, 1, 1)
        for parity in range(2):
            mbarrier.arrive_expect_tx(warp, MBAR, 128)
            tma.load(warp, warp.machine.tensor_map, (0, 0), TILE, MBAR)
            yield from mbarrier.try_wait(warp, MBAR + 8, parity)

    def reading(warp):
        yield from ready(warp)
        for parity in range(2):
            yield from mbarrier.try_wait(warp, MBAR, parity)
            smem.ld(warp, TILE, 4)
            if fenced:
                smem.fence_proxy_async(warp)
            mbarrier.arrive(warp, MBAR + 8)

    seen, on = found(
        loading, reading, schedule=schedule, ordering=ordering, prepare=box
    )
    severity = {"ptx": "error", "shipped": "allowed"}[ordering]
    assert seen == (set() if fenced else {(Failure.PROXY, severity)})
    clean = fenced or ordering == "shipped"
    assert on.order.findings.verdict == ("clean" if clean else "error")


@every
@pytest.mark.parametrize(
    ("space", "enough"),
    [("shared::cta", True), ("shared::cluster", True), ("generic", True)]
    + [("global", False), ("", False)],
)
def test_a_proxy_fence_covers_its_own_state_space(schedule, space, enough):
    def body(warp):
        smem.st(warp, TILE, np.zeros(128, np.uint8))
        if space:
            smem.fence_proxy_async(warp, space)
        tma.store(warp, warp.machine.tensor_map, (0, 0), TILE)
        tma.commit_group(warp)
        yield from tma.wait_group(warp, 0)

    seen = failures(body, schedule=schedule, prepare=box)
    assert seen == (set() if enough else {Failure.PROXY})


@every
@pytest.mark.parametrize("space", ["shared::cta", "shared::cluster"])
def test_a_fence_of_the_cta_leaves_the_peer_open(schedule, space):
    """Rank 0 writes into rank 1, fences, and rank 1 stores from there."""

    def body(warp):
        if warp.cta.rank == 0:
            smem.st(warp, cluster.mapa(warp, TILE, 1), np.zeros(128, np.uint8))
            smem.fence_proxy_async(warp, space)
        yield from cluster.wait(warp, cluster.arrive(warp))
        if warp.cta.rank == 1:
            tma.store(warp, warp.machine.tensor_map, (0, 0), TILE | 1 << 24)
            tma.commit_group(warp)
            yield from tma.wait_group(warp, 0)

    pair = {"grid": (2, 1, 1), "cluster": (2, 1, 1), "sms": 2}
    seen = failures(body, schedule=schedule, prepare=box, **pair)
    assert seen == ({Failure.PROXY} if space == "shared::cta" else set())
