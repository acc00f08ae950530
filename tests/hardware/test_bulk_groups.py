"""tma: bulk groups, and what may be in flight."""

from __future__ import annotations

import numpy as np
import pytest
from on_machine import MBAR, TILE, launch, machine, random_bytes
from tensor_copies import tensor_map

from fp4ref.errors import ExitFault, ReadWhileInFlight
from fp4ref.hardware import mbarrier, smem, tma


def storing(steps, groups=3):
    """Store `groups` tiles, one group each; then `steps`. Returns the machine."""
    on = machine("late", trace=True)
    _, m = tensor_map(on, "UINT8", (128, 8), (128, 1))

    def body(warp):
        for i in range(groups):
            smem.st(warp, TILE + 128 * i, random_bytes(128, i))
        smem.fence_proxy_async(warp)
        for i in range(groups):
            tma.store(warp, m, (0, i), TILE + 128 * i)
            tma.commit_group(warp)
        result = steps(warp)
        if result is not None:
            yield from result

    launch(on, body)
    return on


def landed_before(on, operation):
    """(unit, row) of each landing before the first event called `operation`."""
    events = on.recorder.trace.events
    stop = next(e.step for e in events if e.operation == operation)
    return [
        (e.agent, e.operands["coords"][1]) for e in events[:stop] if e.kind == "land"
    ]


def test_wait_group_leaves_the_newest_groups_pending():
    on = storing(lambda w: tma.wait_group(w, 1))
    landed = landed_before(on, "cp.async.bulk.wait_group")
    assert ("tma", 0) in landed
    assert ("tma", 1) in landed


def test_wait_group_read_waits_only_for_the_sources():
    on = storing(lambda w: tma.wait_group(w, 0, read=True))
    landed = landed_before(on, "cp.async.bulk.wait_group.read")
    assert {("tma.read", i) for i in range(3)} <= set(landed)
    assert not {("tma", i) for i in range(3)} <= set(landed)


def test_wait_group_for_more_than_there_are_does_not_wait():
    on = storing(lambda w: tma.wait_group(w, 5))
    assert landed_before(on, "cp.async.bulk.wait_group") == []


def test_wait_group_0_waits_for_an_old_group_though_a_newer_one_is_done():
    """Only the newest N may be pending; an older one is waited for all the same."""
    on = machine(trace=True, schedule="late")
    _, m = tensor_map(on, "UINT8", (128, 8), (128, 1))

    def body(warp):
        for i in range(3):
            smem.st(warp, TILE + 128 * i, random_bytes(128, i))
        smem.fence_proxy_async(warp)
        ops = []
        for i in range(3):
            tma.store(warp, m, (0, i), TILE + 128 * i)
            ops.append(warp.bulk_open[-1])
            if i == 2:
                warp.machine.land_now(ops[1])
            tma.commit_group(warp)
        yield from tma.wait_group(warp, 2)
        assert ops[0].landed

    launch(on, body)


def test_source_may_be_reused_only_after_wait_group_read():
    def reuse(wait):
        def steps(warp):
            if wait:
                yield from tma.wait_group(warp, 0, read=True)
            smem.st(warp, TILE, random_bytes(16))
            yield from ()

        return steps

    storing(reuse(True))
    with pytest.raises(ReadWhileInFlight, match="store in flight reads"):
        storing(reuse(False))


def test_stores_outlive_their_cta():
    on = storing(lambda w: None)
    for i in range(3):
        got = on.gmem.contents(on.gmem.allocations[0].address + 128 * i, 128)
        np.testing.assert_array_equal(got, random_bytes(128, i))


def test_a_load_does_not_outlive_its_cta():
    on = machine("late")
    _, m = tensor_map(on, "UINT8", (128,), (128,))

    def body(warp):
        mbarrier.init(warp, MBAR, 1)
        mbarrier.arrive_expect_tx(warp, MBAR, 128)
        tma.load(warp, m, (0,), TILE, MBAR)

    with pytest.raises(ExitFault, match="load is in flight"):
        launch(on, body)


@pytest.mark.parametrize("schedule", ["eager", "late"])
def test_groups_do_not_pile_up(schedule):
    on = machine(schedule)
    _, m = tensor_map(on, "UINT8", (128, 8), (128, 1))

    def body(warp):
        smem.st(warp, TILE, random_bytes(128))
        smem.fence_proxy_async(warp)
        seen = []
        for i in range(50):
            tma.store(warp, m, (0, i % 8), TILE)
            seen.append(warp.bulk_open[-1])
            tma.commit_group(warp)
            yield from tma.wait_group(warp, 0)
        assert len(warp.bulk_groups) <= 1
        assert not warp.bulk_open
        assert all(not op.after for op in seen)

    launch(on, body)


def test_two_stores_to_the_same_place_in_flight():
    on = machine("late")
    _, m = tensor_map(on, "UINT8", (128, 8), (128, 1))

    def body(warp):
        smem.st(warp, TILE, random_bytes(128))
        smem.fence_proxy_async(warp)
        tma.store(warp, m, (0, 0), TILE)
        tma.store(warp, m, (0, 0), TILE)

    with pytest.raises(ReadWhileInFlight):
        launch(on, body)


def test_loads_into_one_place_in_flight():
    on = machine("late")
    _, m = tensor_map(on, "UINT8", (128, 8), (128, 1))

    def body(warp):
        mbarrier.init(warp, MBAR, 1)
        mbarrier.arrive_expect_tx(warp, MBAR, 256)
        tma.load(warp, m, (0, 0), TILE, MBAR)
        tma.load(warp, m, (0, 1), TILE, MBAR)

    with pytest.raises(ReadWhileInFlight, match="load in flight writes"):
        launch(on, body)


def test_reading_a_tile_before_its_barrier():
    on = machine("late")
    _, m = tensor_map(on, "UINT8", (128, 8), (128, 1))

    def body(warp):
        mbarrier.init(warp, MBAR, 1)
        mbarrier.arrive_expect_tx(warp, MBAR, 128)
        tma.load(warp, m, (0, 0), TILE, MBAR)
        smem.ld(warp, TILE + 127, 1)

    with pytest.raises(ReadWhileInFlight, match="load in flight writes"):
        launch(on, body)
