"""cp_async: copies of single lanes, and the arrival that waits for them."""

from __future__ import annotations

import numpy as np
import pytest
from on_machine import MBAR, TILE, launch, machine, random_bytes

from fp4ref.errors import (
    ClusterFault,
    ExitFault,
    MbarrierFault,
    MisalignedAddress,
    MissingProxyFence,
    OutOfBounds,
    ReadWhileInFlight,
    UninitialisedRead,
)
from fp4ref.hardware import cp_async, mbarrier, smem, tma
from fp4ref.hardware.tensor_map import DataType, TensorMap
from fp4ref.trace import Range

DATA = random_bytes(512)


def uploaded(schedule="eager", **options):
    on = machine(schedule, **options)
    return on, on.gmem.upload("S", DATA)


def copied(warp, source, *, count=8, nbytes=4, arrivals=1, wait=True):
    """Copy every second piece of the source; wait for it."""
    mbarrier.init(warp, MBAR, arrivals)
    lanes = range(count)
    cp_async.copy(
        warp,
        [TILE + nbytes * i for i in lanes],
        [source + 2 * nbytes * i for i in lanes],
        nbytes,
    )
    cp_async.mbarrier_arrive_noinc(warp, MBAR, arrivals)
    if wait:
        yield from mbarrier.try_wait(warp, MBAR, 0)


@pytest.mark.parametrize("schedule", ["eager", "late", 3])
@pytest.mark.parametrize("nbytes", [4, 8, 16])
def test_each_lane_copies_its_bytes(schedule, nbytes):
    on, source = uploaded(schedule)

    def body(warp):
        yield from copied(warp, source, nbytes=nbytes, arrivals=32)
        got = smem.ld(warp, TILE, 8 * nbytes).reshape(8, nbytes)
        np.testing.assert_array_equal(got, DATA.reshape(-1, nbytes)[:16:2])

    launch(on, body)


def test_its_events_name_the_first_lanes_destination():
    on, source = uploaded(trace=True)
    launch(on, lambda warp: copied(warp, source))
    events = [e for e in on.recorder.trace if e.operation == "cp.async"]
    assert len(events) == 2  # issued and landed
    for event in events:
        assert event.operands == {"smem": TILE, "lanes": 8, "nbytes": 32}


@pytest.mark.parametrize("schedule", ["eager", "late", 3])
def test_what_is_not_read_becomes_zero(schedule):
    on, source = uploaded(schedule)
    end = source + DATA.size

    def body(warp):
        mbarrier.init(warp, MBAR, 1)
        cp_async.copy(
            warp, [TILE, TILE + 8, TILE + 16], [source, end - 8, end], 8, [3, 8, 0]
        )
        cp_async.mbarrier_arrive_noinc(warp, MBAR, 1)
        yield from mbarrier.try_wait(warp, MBAR, 0)
        got = smem.ld(warp, TILE, 24)
        wanted = [*DATA[:3], *[0] * 5, *DATA[-8:], *[0] * 8]
        np.testing.assert_array_equal(got, wanted)

    launch(on, body)


@pytest.mark.parametrize("size", [-1, 5])
def test_no_more_is_read_than_is_written(size):
    on, source = uploaded()
    with pytest.raises(OutOfBounds, match="src-size is at most cp-size"):
        launch(on, lambda w: cp_async.copy(w, [TILE], [source], 4, [size]))


def test_the_arrival_comes_after_the_copies():
    on, source = uploaded("late", trace=True)
    launch(on, lambda warp: copied(warp, source))
    landed = [e.operation for e in on.recorder.trace if e.kind == "land"]
    assert landed == ["cp.async", "cp.async.mbarrier.arrive.noinc"]


def test_the_arrival_does_not_wait_for_another_warp():
    on, source = uploaded("late")

    def other(warp):
        cp_async.copy(warp, [TILE + 256], [source], 4)
        mbarrier.init(warp, MBAR + 8, 1)
        cp_async.mbarrier_arrive_noinc(warp, MBAR + 8, 1)
        yield from mbarrier.try_wait(warp, MBAR + 8, 0)
        passed.append(warp.index)

    def body(warp):
        yield from copied(warp, source, arrivals=32)
        passed.append(warp.index)

    passed = []
    launch(on, body, other)
    assert sorted(passed) == [0, 1]


def test_every_lane_arrives():
    def twice(warp):
        mbarrier.init(warp, MBAR, 1)
        cp_async.mbarrier_arrive_noinc(warp, MBAR, 2)

    with pytest.raises(MbarrierFault, match="arrival count 2, but 1 pending"):
        launch(machine(), twice)


def test_reading_before_the_wait_is_a_conflict():
    on, source = uploaded("late")

    def body(warp):
        yield from copied(warp, source, wait=False)
        smem.ld(warp, TILE, 4)

    with pytest.raises(ReadWhileInFlight, match=r"cp\.async in flight writes"):
        launch(on, body)


def test_overwriting_the_source_before_the_wait_is_a_conflict():
    on, source = uploaded("late")

    def body(warp):
        yield from copied(warp, source, wait=False)
        on.gmem.write(Range(on.gmem.space, source, 4), np.zeros((1, 4), np.uint8))

    with pytest.raises(ReadWhileInFlight, match=r"cp\.async in flight reads"):
        launch(on, body)


def test_copies_in_flight_at_exit():
    on, source = uploaded("late")
    with pytest.raises(ExitFault):
        launch(on, lambda w: cp_async.copy(w, [TILE], [source], 4))


def test_the_copy_is_a_generic_write():
    on, source = uploaded("late")
    address = on.gmem.allocate("D", 32)
    d = TensorMap(DataType.UINT8, address, (32,), (), (32,))

    def body(fenced):
        def run(warp):
            yield from copied(warp, source)
            if fenced:
                smem.fence_proxy_async(warp)
            tma.store(warp, d, (0,), TILE)

        return run

    launch(on, body(True))
    np.testing.assert_array_equal(
        on.gmem.contents(address, 32), DATA.reshape(-1, 4)[:16:2].ravel()
    )
    on, source = uploaded("late")
    d = TensorMap(DataType.UINT8, on.gmem.allocate("D", 32), (32,), (), (32,))
    with pytest.raises(MissingProxyFence, match="written by warp 0"):
        launch(on, body(False))


@pytest.mark.parametrize(
    ("target", "offset", "nbytes", "error"),
    [
        (TILE + 2, 0, 4, MisalignedAddress),
        (TILE, 4, 8, MisalignedAddress),
        (TILE, 512, 4, OutOfBounds),
        (0, 0, 16, OutOfBounds),
        (TILE | 1 << 24, 0, 4, ClusterFault),
    ],
)
def test_refused_copies(target, offset, nbytes, error):
    on, source = uploaded("late", sms=2)
    with pytest.raises(error) as caught:
        launch(
            on,
            lambda w: cp_async.copy(w, [target], [source + offset], nbytes),
            grid=(2, 1, 1),
            cluster=(2, 1, 1),
        )
    # At issue, not at landing.
    assert "for cta" not in caught.value.who


def test_the_source_must_have_been_written():
    on = machine()
    empty = on.gmem.allocate("E", 16)
    with pytest.raises(UninitialisedRead):
        launch(on, lambda w: cp_async.copy(w, [TILE], [empty], 4))


def test_the_arrival_is_on_an_mbarrier_of_the_own_cta():
    with pytest.raises(MbarrierFault):
        launch(machine(), lambda w: cp_async.mbarrier_arrive_noinc(w, TILE, 1))
    with pytest.raises(ClusterFault, match="an mbarrier of cta"):
        launch(
            machine(sms=2),
            lambda w: cp_async.mbarrier_arrive_noinc(
                w, MBAR | (1 - w.cta.rank) << 24, 1
            ),
            grid=(2, 1, 1),
            cluster=(2, 1, 1),
        )
