"""named_barrier: rounds, counts, ids, and warps that exit early."""

from __future__ import annotations

import pytest
from on_machine import launch, machine

from fp4ref.errors import DeadlockError
from fp4ref.hardware import named_barrier
from fp4ref.hardware.cta_barriers import NamedBarrierFault


@pytest.mark.parametrize("schedule", ["eager", "late", 0, 1, 2])
def test_nobody_leaves_before_everybody_came(schedule):
    came, left = [], []

    def body(warp):
        for round_ in range(3):
            came.append(round_)
            yield from named_barrier.sync(warp, 1, 128)
            assert came.count(round_) == 4
            left.append(round_)

    launch(machine(schedule), *[body] * 4)
    assert sorted(left) == [0] * 4 + [1] * 4 + [2] * 4


def test_arrive_counts_and_goes_on():
    order = []

    def waits(warp):
        yield from named_barrier.sync(warp, 6, 64)
        order.append("waited")

    def arrives(warp):
        named_barrier.arrive(warp, 6, 64)
        order.append("arrived")

    launch(machine(), waits, arrives)
    assert order == ["arrived", "waited"]


def test_barriers_are_independent():
    def body(warp):
        yield from named_barrier.sync(warp, warp.index // 2, 64)

    launch(machine(), *[body] * 4)


@pytest.mark.parametrize(("barrier", "threads"), [(16, 64), (-1, 64), (0, 33), (0, 0)])
def test_bad_id_or_count(barrier, threads):
    with pytest.raises(NamedBarrierFault, match=r"ids are 0\.\.15"):
        launch(machine(), lambda w: named_barrier.arrive(w, barrier, threads))


def test_one_round_has_one_count():
    def body(warp):
        yield from named_barrier.sync(warp, 0, 64 + 32 * warp.index)

    with pytest.raises(NamedBarrierFault, match="96 threads here, 64 in an earlier"):
        launch(machine(), body, body)


def test_too_few_threads_deadlock_by_name():
    def body(warp):
        yield from named_barrier.sync(warp, 6, 160)

    with pytest.raises(DeadlockError, match="named barrier 6: 96 of 160 threads"):
        launch(machine(), body, body, body)


def test_without_a_count_the_whole_cta_is_waited_for():
    order = []

    def body(warp):
        order.append("came")
        yield from named_barrier.sync(warp, 0)
        order.append("left")

    launch(machine(), body, body, body)
    assert order == ["came"] * 3 + ["left"] * 3


@pytest.mark.parametrize("exit_first", [True, False])
def test_without_a_count_exited_warps_are_not_waited_for(exit_first):
    def waits(warp):
        yield from named_barrier.sync(warp, 0)

    def exits(warp):
        yield from ()

    bodies = [exits, waits, waits] if exit_first else [waits, waits, exits]
    launch(machine(), *bodies)


def test_with_a_count_exited_warps_are_missed():
    def waits(warp):
        yield from named_barrier.sync(warp, 0, 64)

    with pytest.raises(DeadlockError, match="32 of 64"):
        launch(machine(), waits, lambda w: None)


@pytest.mark.parametrize("schedule", ["eager", "late", 0, 1, 2])
def test_every_thread_of_a_round_gets_what_all_have_voted(schedule):
    told = []

    def body(warp):
        for round_ in range(4):
            votes = [lane < 8 * round_ + warp.index for lane in range(32)]
            ballot = yield from named_barrier.reduce(warp, "popc", 3, votes, 96)
            told.append((round_, ballot.threads, ballot.true))

    launch(machine(schedule), *[body] * 3)
    wanted = [(r, 96, 24 * r + 3) for r in range(4) for _ in range(3)]
    assert sorted(told) == wanted


def test_lanes_that_have_exited_have_no_vote():
    def body(warp):
        ballot = yield from named_barrier.reduce(warp, "and", 0, [True] * 5)
        assert (ballot.threads, ballot.true) == (10, 10)

    launch(machine(), body, body)


@pytest.mark.parametrize("first", ["sync", "arrive", "and"])
@pytest.mark.parametrize("late", [0, 1])
def test_a_reduction_is_not_mixed_with_other_arrivals(first, late):
    def body(warp):
        if warp.index == late or first == "and":
            operation = "popc" if warp.index == late else first
            yield from named_barrier.reduce(warp, operation, 5, [True] * 32, 64)
        elif first == "arrive":
            named_barrier.arrive(warp, 5, 64)
        else:
            yield from named_barrier.sync(warp, 5, 64)

    with pytest.raises(NamedBarrierFault, match="earlier in the same round"):
        launch(machine("eager"), body, body)


def test_an_id_takes_another_kind_of_arrival_in_its_next_round():
    def body(warp):
        yield from named_barrier.sync(warp, 5, 64)
        votes = [warp.index == 1] * 32
        ballot = yield from named_barrier.reduce(warp, "or", 5, votes, 64)
        assert ballot.true == 32
        yield from named_barrier.sync(warp, 5, 64)

    launch(machine(), body, body)
