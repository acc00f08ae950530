"""machine: launches, schedules, deadlocks, exits, and what a fault says."""

from __future__ import annotations

import numpy as np
import pytest
from on_machine import BASE, MBAR, TILE, launch, machine, random_bytes

from fp4ref.errors import (
    DeadlockError,
    ExitFault,
    InputError,
    LaunchFault,
    MbarrierFault,
    OutOfBounds,
    ReadWhileInFlight,
)
from fp4ref.hardware import mbarrier, smem, tma, tmem
from fp4ref.hardware.in_flight import closure
from fp4ref.hardware.machine import Machine
from fp4ref.hardware.sm import elect_sync
from fp4ref.hardware.tensor_map import DataType, TensorMap
from fp4ref.trace import Recorder

STAGES, ROUNDS = 3, 8
FULL = [BASE + 8 * i for i in range(STAGES)]
EMPTY = [BASE + 64 + 8 * i for i in range(STAGES)]


def copy_kernel(source, target):
    """A producer loads rows, a consumer adds 1 to each byte and stores them."""

    def producer(warp):
        for k in range(ROUNDS):
            stage, parity = k % STAGES, k // STAGES & 1
            yield from mbarrier.try_wait(warp, EMPTY[stage], parity ^ 1)
            mbarrier.arrive_expect_tx(warp, FULL[stage], 128)
            at = TILE + 128 * stage
            tma.load(warp, source, (0, k), at, FULL[stage])

    def consumer(warp):
        for k in range(ROUNDS):
            stage, parity = k % STAGES, k // STAGES & 1
            yield from mbarrier.try_wait(warp, FULL[stage], parity)
            row = smem.ld(warp, TILE + 128 * stage, 128)
            smem.fence_proxy_async(warp)
            mbarrier.arrive(warp, EMPTY[stage])
            yield from tma.wait_group(warp, 1, read=True)
            out = TILE + 0x1000 + 128 * (k % 2)
            smem.st(warp, out, row + np.uint8(1))
            smem.fence_proxy_async(warp)
            tma.store(warp, target, (0, k), out)
            tma.commit_group(warp)
        yield from tma.wait_group(warp, 0)

    return producer, consumer


def initialised(*bodies):
    """Warp 0 initialises the barriers before it does its own work."""
    first, *rest = bodies

    def begin(warp):
        for bar in FULL + EMPTY:
            mbarrier.init(warp, bar, 1)
        mbarrier.init(warp, BASE + 128, 1)
        mbarrier.arrive(warp, BASE + 128)
        yield from first(warp)

    return [begin, *rest]


def rows_map(on, name, data):
    address = on.gmem.upload(name, data)
    return TensorMap(DataType.UINT8, address, (128, ROUNDS), (128,), (128, 1))


def copied(schedule):
    on = machine(schedule)
    data = random_bytes(128 * ROUNDS)
    source = rows_map(on, "S", data)
    target = rows_map(on, "D", np.zeros_like(data))

    def kernel(cta):
        bars = cta.mbarriers
        for bar in FULL + EMPTY:
            bars.store(bar, mbarrier.MbarrierState(0, 1, 1, 0))

    launch(on, *copy_kernel(source, target), setup=kernel)
    got = on.gmem.contents(target.address, data.size)
    np.testing.assert_array_equal(got, data + np.uint8(1))
    return got.tobytes()


def test_every_schedule_gives_the_same_bytes():
    results = {copied(schedule) for schedule in ("eager", "late", *range(100))}
    assert len(results) == 1


def test_a_missing_wait_shows_in_some_schedule():
    """The producer that does not wait for empty stages is caught."""
    on = machine("late")
    data = random_bytes(128 * ROUNDS)
    source = rows_map(on, "S", data)

    def producer(warp):
        for bar in FULL:
            mbarrier.init(warp, bar, 1)
        for k in range(ROUNDS):
            mbarrier.expect_tx(warp, FULL[k % STAGES], 128)
            tma.load(warp, source, (0, k), TILE + 128 * (k % STAGES), FULL[k % STAGES])
        yield from ()

    with pytest.raises(ReadWhileInFlight, match="load in flight writes") as caught:
        launch(on, producer)
    assert "smem0" in caught.value.where
    assert "warp0" in caught.value.who


def test_deadlock_report():
    def waiter(warp):
        warp.smem.labels[MBAR] = "acc.full[1]"
        mbarrier.init(warp, MBAR, 3)
        mbarrier.arrive_expect_tx(warp, MBAR, 4096)
        yield from mbarrier.try_wait(warp, MBAR, 0)

    def helper(warp):
        mbarrier.arrive(warp, MBAR)
        yield from mbarrier.try_wait(warp, MBAR, 0)

    with pytest.raises(DeadlockError) as caught:
        launch(machine(), waiter, helper)
    report = str(caught.value)
    assert len(caught.value.edges) == 2
    for part in (
        "2 warps wait and nothing is in flight",
        "wait-for graph",
        "acc.full[1]",
        "parity 0",
        "1 of 3 arrivals pending",
        "tx-count 4096",
        "cta (0, 0, 0) warp0 at test_machine.py:",
        "released by cta (0, 0, 0) warp0, cta (0, 0, 0) warp1",
    ):
        assert part in report, part


def test_the_line_is_the_one_that_waits():
    def inner(warp):
        yield from mbarrier.try_wait(warp, MBAR, 0)  # the line

    def body(warp):
        mbarrier.init(warp, MBAR, 1)
        yield from inner(warp)

    with pytest.raises(DeadlockError) as caught:
        launch(machine(), body)
    line = inner.__code__.co_firstlineno + 1
    assert f"test_machine.py:{line}" in caught.value.edges[0][0]


def test_work_in_flight_is_no_deadlock():
    on = machine("late")
    source = rows_map(on, "S", random_bytes(128 * ROUNDS))

    def body(warp):
        mbarrier.init(warp, MBAR, 1)
        mbarrier.arrive_expect_tx(warp, MBAR, 128)
        tma.load(warp, source, (0, 0), TILE, MBAR)
        yield from mbarrier.try_wait(warp, MBAR, 0)
        landed.append(smem.ld(warp, TILE, 128))

    landed = []
    launch(on, body)
    assert len(landed) == 1


def test_exit_with_tmem_or_with_work():
    with pytest.raises(ExitFault, match="32 TMEM columns"):
        launch(machine(), lambda w: tmem.alloc(w, BASE, 32))
    on = machine("late")

    def body(warp):
        yield from tmem.alloc(warp, BASE, 32)
        tmem.st(warp, 0, np.zeros((32, 1), np.uint32))

    with pytest.raises(ExitFault, match=r"tcgen05\.st is in flight"):
        launch(on, body)


def nothing(warp):
    return None


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"smem_nbytes": 232_449}, "227 KB"),
        ({"smem_nbytes": -1}, "227 KB"),
        ({"grid": (3, 1, 1), "cluster": (2, 1, 1)}, "multiple of the cluster"),
        ({"grid": (4, 1, 1), "cluster": (4, 1, 1)}, "one SM for each"),
        ({"grid": (0, 1, 1)}, "multiple of the cluster"),
        ({"only": [(1, 0, 0)]}, "inside the grid"),
        (
            {"grid": (4, 1, 1), "cluster": (2, 1, 1), "only": [(1, 0, 0)]},
            "first CTA of a cluster",
        ),
    ],
)
def test_launch_limits(options, says):
    with pytest.raises(LaunchFault, match=says):
        launch(machine(sms=2), nothing, **options)


@pytest.mark.parametrize("warps", [0, 33])
def test_warps_of_a_cta(warps):
    with pytest.raises(LaunchFault, match="1 to 32 warps"):
        launch(machine(), *[nothing] * warps)


def test_only_some_ctas():
    ran = []
    launch(
        machine(),
        lambda w: ran.append(w.cta.ctaid),
        grid=(3, 2, 1),
        only=[(2, 1, 0), (0, 0, 0)],
    )
    assert ran == [(0, 0, 0), (2, 1, 0)]


def test_ctas_run_in_grid_order_x_fastest():
    ran = []
    launch(machine(), lambda w: ran.append(w.cta.ctaid), grid=(2, 2, 2))
    assert ran == [(x, y, z) for z in (0, 1) for y in (0, 1) for x in (0, 1)]


def test_a_fault_is_sticky():
    on = machine()
    with pytest.raises(OutOfBounds):
        launch(on, lambda w: smem.st(w, 0, random_bytes(1)))
    with pytest.raises(LaunchFault, match="make a new Machine"):
        launch(on, nothing)


def test_launch_after_launch_keeps_global_memory():
    on = machine()
    source = rows_map(on, "S", random_bytes(128 * ROUNDS))
    target = rows_map(on, "D", np.zeros(128 * ROUNDS, np.uint8))

    def copy(warp):
        mbarrier.init(warp, MBAR, 1)
        mbarrier.arrive_expect_tx(warp, MBAR, 128)
        tma.load(warp, source, (0, 3), TILE, MBAR)
        yield from mbarrier.try_wait(warp, MBAR, 0)
        tma.store(warp, target, (0, 5), TILE)
        tma.commit_group(warp)
        yield from tma.wait_group(warp, 0)

    launch(on, copy)
    launch(on, nothing)
    np.testing.assert_array_equal(
        on.gmem.contents(target.address + 640, 128),
        on.gmem.contents(source.address + 384, 128),
    )


def test_a_recorder_follows_one_launch():
    on = machine(trace=True)
    launch(on, nothing)
    with pytest.raises(InputError, match="new Recorder"):
        launch(on, nothing)
    on.recorder = Recorder()
    launch(on, lambda w: smem.st(w, TILE, random_bytes(4)))
    assert len(on.recorder.trace) == 1
    on.recorder = None
    launch(on, lambda w: smem.st(w, TILE, random_bytes(4)))


def test_constructor():
    with pytest.raises(InputError, match="at least 1"):
        Machine(0)
    with pytest.raises(InputError, match="'ptx' or 'shipped'"):
        Machine(ordering="fast")


def test_elect_takes_the_lowest_lane():
    def body(warp):
        assert elect_sync(warp) == 0
        assert elect_sync(warp, 0b11000) == 3
        assert elect_sync(warp, 1 << 31) == 31

    launch(machine(), body)


def test_watchers_see_every_step():
    on, seen = machine(), []
    on.on_step.append(lambda m: seen.append(m.steps))
    launch(on, nothing, nothing)
    assert seen == list(range(1, on.steps + 1))


def test_an_error_of_the_kernel_comes_through():
    def body(warp):
        yield from ()
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        launch(machine(), body)


def test_a_fault_names_who_where_rule_and_remedy():
    with pytest.raises(MbarrierFault) as caught:
        launch(machine(), lambda w: mbarrier.arrive(w, TILE))
    fault = caught.value
    assert fault.who == "cta (0, 0, 0) warp0"
    assert f"{TILE:#x}" in fault.where
    assert fault.rule
    assert fault.remedy
    assert str(fault).startswith("MbarrierFault: ")


def test_closure_is_transitive():
    """A commit after an MMA is after the copies of that MMA too."""
    on = machine("late")
    source = rows_map(on, "S", random_bytes(128 * ROUNDS))

    def body(warp):
        smem.st(warp, TILE, random_bytes(128))
        smem.fence_proxy_async(warp)
        tma.store(warp, source, (0, 0), TILE)
        read, write = warp.bulk_open
        assert closure([write]) == {read, write}
        warp.machine.land_now(write)
        assert read.landed
        assert write.landed
        assert not write.after

    launch(on, body)
