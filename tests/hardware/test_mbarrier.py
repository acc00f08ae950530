"""mbarrier: words, counts, phases and refusals."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from on_machine import BASE, MBAR, launch, machine, word_at

from fp4ref.errors import (
    ClusterFault,
    DeadlockError,
    ExitFault,
    MbarrierCorrupted,
    MbarrierFault,
    MisalignedAddress,
    OutOfBounds,
)
from fp4ref.hardware import cluster, mbarrier, named_barrier, smem
from fp4ref.hardware.mbarrier_unit import MbarrierState

LIMIT = (1 << 20) - 1


def word(phase, pending, expected, tx_count):
    """The 64-bit word from the bit positions that were measured."""
    minus_expected = (0x100000 - expected) & 0xFFFFF
    minus_pending = (0x100000 - pending) & 0xFFFFF
    minus_tx = -tx_count & 0x1FFFFF
    return phase << 63 | minus_pending << 43 | minus_tx << 21 | minus_expected << 1


def states_of(*actions, count=1):
    """Run the actions on one mbarrier; return (phase, pending, tx) after each."""
    on = machine(trace=True)

    def body(warp):
        mbarrier.init(warp, MBAR, count)
        for action in actions:
            action(warp)
        mbarrier.inval(warp, MBAR)

    launch(on, body)
    changes = [b for e in on.recorder.trace for b in e.barrier]
    return [b.after for b in changes], on


@pytest.mark.parametrize(
    ("count", "golden"), [(32, 0x7FFF0000_001FFFC0), (1, 0x7FFFF800_001FFFFE)]
)
def test_init_writes_the_word_that_ptxas_writes(count, golden):
    on = launch(machine(), lambda w: mbarrier.init(w, MBAR, count))
    assert word_at(on, MBAR) == golden


def test_the_word_with_bytes_expected_is_what_an_h200_showed():
    def body(warp):
        mbarrier.init(warp, MBAR, 5)
        mbarrier.arrive(warp, MBAR)
        mbarrier.expect_tx(warp, MBAR, 0x123)
        mbarrier.complete_tx(warp, MBAR, 0x23)
        golden.append(word_at(on, MBAR))
        mbarrier.complete_tx(warp, MBAR, 0x100)
        return
        yield

    golden, on = [], machine()
    launch(on, body)
    assert golden == [0x7FFFE3FF_E01FFFF6]


@given(
    st.integers(0, 1),
    st.integers(1, LIMIT),
    st.integers(1, LIMIT),
    st.integers(-LIMIT, LIMIT),
)
def test_word_round_trip(phase, pending, expected, tx_count):
    state = MbarrierState(phase, pending, expected, tx_count)
    assert state.encode() == word(phase, pending, expected, tx_count)
    assert MbarrierState.decode(state.encode()) == state


def test_every_operation_changes_what_ptx_says():
    states, on = states_of(
        lambda w: mbarrier.arrive(w, MBAR),
        lambda w: mbarrier.expect_tx(w, MBAR, 100),
        lambda w: mbarrier.arrive_expect_tx(w, MBAR, 28),
        lambda w: mbarrier.complete_tx(w, MBAR, 120),
        lambda w: mbarrier.arrive(w, MBAR, 3),
        lambda w: mbarrier.complete_tx(w, MBAR, 8),
        count=5,
    )
    assert states == [
        (0, 5, 0),
        (0, 4, 0),
        (0, 4, 100),
        (0, 3, 128),
        (0, 3, 8),
        (0, 0, 8),
        (1, 5, 0),
    ]
    assert word_at(on, MBAR) == word(1, 5, 5, 0)


def test_tx_count_may_be_negative_on_the_way():
    states, _ = states_of(
        lambda w: mbarrier.complete_tx(w, MBAR, 4096),
        lambda w: mbarrier.expect_tx(w, MBAR, 4096),
        lambda w: mbarrier.arrive(w, MBAR),
    )
    assert states == [(0, 1, 0), (0, 1, -4096), (0, 1, 0), (1, 1, 0)]


def test_negative_tx_count_in_the_word():
    on = machine()

    def body(warp):
        mbarrier.init(warp, MBAR, 1)
        mbarrier.complete_tx(warp, MBAR, 16)
        mbarrier.inval(warp, MBAR)

    launch(on, body)
    assert word_at(on, MBAR) == word(0, 1, 1, -16)


def test_phase_completes_only_when_bytes_and_arrivals_are_zero():
    states, _ = states_of(
        lambda w: mbarrier.arrive_expect_tx(w, MBAR, 16),
        lambda w: mbarrier.complete_tx(w, MBAR, 16),
        lambda w: mbarrier.complete_tx(w, MBAR, 16),
        lambda w: mbarrier.arrive_expect_tx(w, MBAR, 16),
    )
    assert [s[0] for s in states] == [0, 0, 1, 1, 0]


def test_bytes_left_over_at_exit():
    def body(warp):
        mbarrier.init(warp, MBAR, 1)
        mbarrier.complete_tx(warp, MBAR, 16)

    with pytest.raises(ExitFault, match="tx-count -16 at exit"):
        launch(machine(), body)


def test_parities_over_four_phases():
    seen = []

    def body(warp):
        mbarrier.init(warp, MBAR, 2)
        for _ in range(4):
            seen.append([mbarrier.test_wait(warp, MBAR, p) for p in (0, 1)])
            mbarrier.arrive(warp, MBAR)
            assert mbarrier.pending_count(warp, MBAR) == 1
            mbarrier.arrive(warp, MBAR)

    launch(machine(), body)
    # A fresh barrier passes parity 1 and blocks parity 0.
    assert seen == [[False, True], [True, False]] * 2


def test_late_schedule_never_shows_a_phase_to_a_peek():
    def body(warp):
        mbarrier.init(warp, MBAR, 1)
        assert not mbarrier.test_wait(warp, MBAR, 1)
        yield from mbarrier.try_wait(warp, MBAR, 1)

    launch(machine("late"), body)


def test_a_waiter_sleeps_until_the_phase_completes():
    order = []

    def waiter(warp):
        mbarrier.init(warp, MBAR, 1)
        yield from mbarrier.try_wait(warp, MBAR, 0)
        order.append("woke")

    def arriver(warp):
        order.append("arrives")
        mbarrier.arrive(warp, MBAR)

    launch(machine(), waiter, arriver)
    assert order == ["arrives", "woke"]


@pytest.mark.parametrize("count", [0, -1, LIMIT + 1])
def test_init_count_range(count):
    with pytest.raises(MbarrierFault, match="init with count"):
        launch(machine(), lambda w: mbarrier.init(w, MBAR, count))


def test_largest_init_count():
    on = launch(machine(), lambda w: mbarrier.init(w, MBAR, LIMIT))
    assert word_at(on, MBAR) == word(0, LIMIT, LIMIT, 0)


@pytest.mark.parametrize(
    "operation",
    [
        lambda w: mbarrier.arrive(w, MBAR, 0),
        lambda w: mbarrier.arrive(w, MBAR, -1),
        lambda w: mbarrier.expect_tx(w, MBAR, -16),
        lambda w: mbarrier.complete_tx(w, MBAR, LIMIT + 1),
        lambda w: mbarrier.arrive_expect_tx(w, MBAR, LIMIT + 1),
    ],
)
def test_operand_ranges(operation):
    with pytest.raises(
        MbarrierFault, match=r"count of .*\n.*\n.*rule: it is [01] \.\."
    ):
        states_of(operation)


@pytest.mark.parametrize(("sign", "value"), [(1, LIMIT), (-1, -LIMIT)])
def test_tx_count_range(sign, value):
    step = mbarrier.expect_tx if sign > 0 else mbarrier.complete_tx
    states, _ = states_of(lambda w: step(w, MBAR, LIMIT), count=2)
    assert states[-1] == (0, 2, value)
    with pytest.raises(MbarrierFault, match=f"tx-count would become {value + sign}"):
        states_of(lambda w: step(w, MBAR, LIMIT), lambda w: step(w, MBAR, 1), count=2)


@pytest.mark.parametrize("parity", [2, -1])
def test_parity_is_one_bit(parity):
    def body(warp):
        mbarrier.init(warp, MBAR, 1)
        mbarrier.test_wait(warp, MBAR, parity)

    with pytest.raises(MbarrierFault, match="parity is 0 or 1"):
        launch(machine(), body)


def test_b29_a_whole_warp_arrives_on_a_count_of_one():
    with pytest.raises(MbarrierFault, match="arrival count 32, but 1 pending"):
        states_of(lambda w: mbarrier.arrive(w, MBAR, 32))


def test_arrivals_beyond_the_count_while_bytes_are_due():
    with pytest.raises(MbarrierFault, match="arrival count 1, but 0 pending"):
        states_of(
            lambda w: mbarrier.arrive_expect_tx(w, MBAR, 16),
            lambda w: mbarrier.arrive(w, MBAR),
        )


@pytest.mark.parametrize("arrivals", [1, 31])
def test_b29_odd_numbers_of_flips_let_a_waiter_pass(arrivals):
    states, _ = states_of(*[lambda w: mbarrier.arrive(w, MBAR)] * arrivals)
    assert states[-1][0] == 1


def test_b29_a_phase_that_ran_on_past_a_waiter_is_named():
    def waiter(warp):
        mbarrier.init(warp, MBAR, 1)
        yield from mbarrier.try_wait(warp, MBAR, 0)

    def arriver(warp):
        for _ in range(32):
            mbarrier.arrive(warp, MBAR)

    with pytest.raises(MbarrierFault, match="before the waiting warp saw it"):
        launch(machine(), waiter, arriver)


def test_b28_too_few_arrivals_deadlock_by_name():
    def body(warp):
        warp.cta.smem.labels[MBAR] = "mainloop.empty[0]"
        mbarrier.init(warp, MBAR, 128)
        mbarrier.arrive(warp, MBAR)
        yield from mbarrier.try_wait(warp, MBAR, 0)

    with pytest.raises(DeadlockError, match=r"mainloop\.empty\[0\]") as caught:
        launch(machine(), body)
    [(waiter, on, released_by)] = caught.value.edges
    assert "warp0" in waiter
    assert "test_mbarrier.py:" in waiter
    assert "parity 0" in on
    assert "127 of 128 arrivals" in on
    assert "warp0" in released_by


def test_two_warps_that_each_arrive_too_late_for_the_other_miss_one_arrival_each():
    def body(warp):
        if warp.index == 0:
            mbarrier.init(warp, MBAR, 2)
            mbarrier.init(warp, MBAR + 8, 2)
        yield from named_barrier.sync(warp, 0, 64)
        mine, other = MBAR + 8 * warp.index, MBAR + 8 * (1 - warp.index)
        mbarrier.arrive(warp, mine)
        yield from mbarrier.try_wait(warp, mine, 0)
        mbarrier.arrive(warp, other)

    with pytest.raises(DeadlockError, match=r"root: .* 1 of 2 arrivals are missing"):
        launch(machine(), body, body)


def test_b28_producer_that_starts_with_parity_0_deadlocks():
    def body(warp):
        mbarrier.init(warp, MBAR, 1)
        yield from mbarrier.try_wait(warp, MBAR, 0)

    with pytest.raises(DeadlockError, match="nobody has arrived"):
        launch(machine(), body)


@pytest.mark.parametrize("stages", [1, 2, 3])
def test_b28_consumer_parity_is_the_round_of_the_ring(stages):
    """k // stages & 1 for the consumer, the opposite for the producer."""
    full = [BASE + 8 * i for i in range(stages)]
    empty = [BASE + 0x100 + 8 * i for i in range(stages)]
    seen = []

    def producer(warp):
        for bar in (*full, *empty):
            mbarrier.init(warp, bar, 1)
        for k in range(8):
            parity = (k // stages) & 1
            yield from mbarrier.try_wait(warp, empty[k % stages], parity ^ 1)
            seen.append(("fill", k))
            mbarrier.arrive(warp, full[k % stages])

    def consumer(warp):
        for k in range(8):
            yield from mbarrier.try_wait(warp, full[k % stages], (k // stages) & 1)
            seen.append(("use", k))
            mbarrier.arrive(warp, empty[k % stages])

    launch(machine(), producer, consumer)
    for k in range(8):
        assert seen.index(("fill", k)) < seen.index(("use", k))
        if k >= stages:
            assert seen.index(("use", k - stages)) < seen.index(("fill", k))


def test_before_init_and_after_inval():
    with pytest.raises(MbarrierFault, match="not an initialised"):
        launch(machine(), lambda w: mbarrier.arrive(w, MBAR))

    def body(warp):
        mbarrier.init(warp, MBAR, 1)
        mbarrier.inval(warp, MBAR)
        mbarrier.init(warp, MBAR, 2)
        mbarrier.inval(warp, MBAR)
        mbarrier.arrive(warp, MBAR)

    with pytest.raises(MbarrierFault, match="not an initialised"):
        launch(machine(), body)


def test_init_of_a_live_barrier():
    with pytest.raises(MbarrierFault, match="on a live mbarrier"):
        states_of(lambda w: mbarrier.init(w, MBAR, 1))


def test_misaligned():
    with pytest.raises(MisalignedAddress, match="8-byte aligned"):
        launch(machine(), lambda w: mbarrier.init(w, MBAR + 4, 1))


@pytest.mark.parametrize("address", [0x3F8, 0x400 + 232_448])
def test_outside_shared_memory(address):
    with pytest.raises(OutOfBounds):
        launch(machine(), lambda w: mbarrier.init(w, address, 1))


def test_a_store_over_a_barrier_is_found_at_its_next_use():
    def body(warp):
        mbarrier.init(warp, MBAR, 1)
        smem.st(warp, MBAR + 2, smem.ld(warp, MBAR, 1))
        mbarrier.arrive(warp, MBAR)

    with pytest.raises(MbarrierCorrupted, match="look for a store that overlaps"):
        launch(machine(), body)


def test_a_barrier_of_the_last_cta_is_forgotten():
    def body(warp):
        if warp.cta.ctaid == (0, 0, 0):
            mbarrier.init(warp, MBAR, 1)
        else:
            mbarrier.arrive(warp, MBAR)

    with pytest.raises(MbarrierFault, match="not an initialised"):
        launch(machine(), body, grid=(2, 1, 1))


@pytest.mark.parametrize(
    "operation",
    [
        lambda w, at: mbarrier.init(w, at, 1),
        mbarrier.inval,
        lambda w, at: mbarrier.test_wait(w, at, 0),
        lambda w, at: next(mbarrier.try_wait(w, at, 0)),
        mbarrier.pending_count,
    ],
)
def test_only_arrivals_and_bytes_work_on_a_remote_barrier(operation):
    def body(warp):
        mbarrier.init(warp, warp.cta.smem_base, 1)
        yield from cluster.wait(warp, cluster.arrive(warp))
        if warp.cta.rank == 0:
            operation(warp, cluster.mapa(warp, MBAR, 1))
        yield from cluster.wait(warp, cluster.arrive(warp))

    with pytest.raises(ClusterFault, match=r"takes a \.shared::cta address"):
        launch(machine(sms=2), body, grid=(2, 1, 1), cluster=(2, 1, 1))
