"""timed: when each thing happens on the clock, by hand for small programs."""

from __future__ import annotations

from dataclasses import fields

import pytest
from on_machine import MBAR, TILE, launch, random_bytes

from fp4ref.errors import InputError
from fp4ref.hardware import mbarrier, named_barrier, tma
from fp4ref.hardware.machine import Machine
from fp4ref.hardware.schedule import make_schedule
from fp4ref.hardware.tensor_map import DataType, TensorMap
from fp4ref.hardware.timing import Durations, Timed
from fp4ref.parameters import Corner
from fp4ref.trace import Recorder

IDEAL = Durations.ideal()


def ran(durations, *bodies, sms=1, ctas=1):
    """Run the bodies as warps of each CTA; returns the events."""
    on = Machine(sms, Timed(durations), "ptx", Recorder(), "off")
    address = on.gmem.upload("A", random_bytes(1 << 16))
    rows = TensorMap(DataType.UINT8, address, (128, 512), (128,), (128, 8))
    launch(
        on,
        *(lambda warp, body=body: body(warp, rows) for body in bodies),
        grid=(ctas, 1, 1),
    )
    return on.recorder.trace.events


def loads(count, row=lambda i: 8 * i):
    """A warp that loads 1,024 bytes as often as said and waits for all of them."""

    def body(warp, rows):
        mbarrier.init(warp, MBAR, 1)
        mbarrier.fence_mbarrier_init(warp)
        mbarrier.arrive_expect_tx(warp, MBAR, 1024 * count)
        for i in range(count):
            tma.load(warp, rows, (0, row(i)), TILE + 1024 * i, MBAR)
        yield from mbarrier.try_wait(warp, MBAR, 0)

    return body


def landings(events):
    return sorted((round(e.start), e.end) for e in events if e.kind == "land")


def the_wait(events):
    return next(e for e in events if "try_wait" in e.operation)


def last(events):
    return max(e.end for e in events)


def test_the_ideal_machine_takes_no_time() -> None:
    assert last(ran(IDEAL, loads(4))) < 1e-9


def test_every_published_duration_is_used_and_none_is_left_out() -> None:
    """A field whose value does not reach the clock would be a figure for show."""
    names = {f.name for f in fields(Durations)}
    assert names == set(Durations.of().to_dict())
    slow, fast = Durations.of(corner=Corner.SLOW), Durations.of(corner=Corner.FAST)
    assert slow.mbarrier_wake == 111
    assert fast.mbarrier_wake == 54
    assert slow.hbm_bandwidth == pytest.approx(6.7e12 / 148 / (1.8e9 / 1.43))


def test_loads_share_the_way_into_shared_memory_and_then_wait_a_latency() -> None:
    durations = IDEAL.changed(tma_fill_bandwidth=8, tma_hbm_latency=100)
    found = landings(ran(durations, loads(3)))
    assert found == [(0, 228), (128, 356), (256, 484)]


def test_a_load_of_known_bytes_has_the_latency_of_l2_and_no_memory_traffic() -> None:
    durations = IDEAL.changed(
        tma_l2_latency=10, tma_hbm_latency=100, hbm_bandwidth=8, l2_bandwidth=16
    )
    first, third, second = landings(ran(durations, loads(3, lambda i: 8 * (i == 1))))
    assert first == (0, 228)
    assert second == (128, 356)
    # It comes to L2 behind both, but not before the bytes that it shares are there.
    assert third == (128, 228)


def test_bytes_that_are_still_on_their_way_come_no_earlier_for_the_second() -> None:
    durations = IDEAL.changed(tma_l2_latency=10, tma_hbm_latency=100)
    first, second = landings(ran(durations, loads(2, lambda _: 0)))
    assert first == second == (0, 100)


def test_a_waiter_goes_on_a_wake_after_the_arrival_but_not_if_it_comes_late() -> None:
    durations = IDEAL.changed(tma_hbm_latency=100, mbarrier_wake=30)
    wait = the_wait(ran(durations, loads(1)))
    assert (wait.start, wait.end) == (0, 130)
    assert wait.issued >= 0
    slow = durations.changed(warp_instruction=200)
    wait = the_wait(ran(slow, loads(1)))
    assert wait.start == 800
    assert wait.end == 800 + 130 + 200


def test_warps_of_a_named_barrier_go_on_after_the_last() -> None:
    durations = IDEAL.changed(warp_instruction=10, named_barrier=5)

    def waits(before):
        def body(warp, _):
            for _ in range(before):
                warp.record("elect.sync", {})
            yield from named_barrier.sync(warp, 1, 64)

        return body

    found = ran(durations, waits(0), waits(7))
    assert [(e.start, e.end) for e in found if e.operation == "bar.sync"] == [
        (0, 75),
        (70, 80),
    ]


def test_a_cta_starts_when_the_one_before_it_has_left_its_sm() -> None:
    durations = IDEAL.changed(warp_instruction=10, cta_start=7)

    def body(warp, _):
        warp.record("elect.sync", {})
        yield from ()

    found = ran(durations, body, ctas=3)
    assert [(e.start, e.end) for e in found] == [(0, 10), (17, 27), (34, 44)]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"mbarrier_wake": -1}, "mbarrier_wake = -1: need zero or more"),
        ({"l2_bandwidth": 0}, "l2_bandwidth = 0: need more than zero"),
        ({"launch": float("nan")}, "launch = nan: need zero or more"),
        ({"launch": "soon"}, "launch = 'soon': need a number"),
        ({"launch": True}, "launch = True: need a number"),
        ({"lunch": 1}, "'lunch' is unknown; they are clock, sms,"),
    ],
)
def test_durations_that_cannot_be_are_refused(wrong, said) -> None:
    with pytest.raises(InputError, match=f"^durations: {said}"):
        Durations.of().changed(**wrong)


def test_the_schedule_has_a_name() -> None:
    assert make_schedule("timed").name == "timed"
