"""schedule: the three orders, and their names."""

from __future__ import annotations

import pytest
from on_machine import MBAR, TILE, launch, machine, random_bytes

from fp4ref.errors import InputError
from fp4ref.hardware import mbarrier, tma
from fp4ref.hardware.schedule import Late, Seeded, make_schedule
from fp4ref.hardware.tensor_map import DataType, TensorMap


def landing_order(schedule):
    """Steps of four independent loads, in the order in which they land."""
    on = machine(schedule, trace=True)
    address = on.gmem.upload("A", random_bytes(512))
    rows = TensorMap(DataType.UINT8, address, (128, 4), (128,), (128, 1))

    def body(warp):
        mbarrier.init(warp, MBAR, 1)
        mbarrier.fence_mbarrier_init(warp)
        mbarrier.arrive_expect_tx(warp, MBAR, 512)
        for row in range(4):
            tma.load(warp, rows, (0, row), TILE + 128 * row, MBAR)
        warp.note("issued")
        yield from mbarrier.try_wait(warp, MBAR, 0)

    launch(on, body)
    events = on.recorder.trace.events
    issued = next(e.step for e in events if e.operation == "issued")
    landed = [e for e in events if e.kind == "land"]
    return [e.operands["coords"][1] for e in landed], issued, landed[0].step


def test_eager_lands_at_issue():
    order, issued, first = landing_order("eager")
    assert order == [0, 1, 2, 3]
    assert first < issued


def test_late_lands_the_newest_first_and_only_when_all_are_blocked():
    order, issued, first = landing_order("late")
    assert order == [3, 2, 1, 0]
    assert first > issued


def test_seeds_differ_and_repeat():
    orders = [tuple(landing_order(seed)[0]) for seed in range(20)]
    assert len(set(orders)) > 5
    assert orders == [tuple(landing_order(seed)[0]) for seed in range(20)]


def test_make_schedule():
    assert make_schedule("eager").name == "eager"
    assert make_schedule("late").name == "late"
    assert make_schedule(7).name == make_schedule("7").name == "seed 7"


@pytest.mark.parametrize("bad", ["lazy", "", 1.5, True, None])
def test_unknown_schedule(bad):
    with pytest.raises(
        InputError, match="say 'eager', 'late', 'timed' or an integer seed"
    ):
        make_schedule(bad)


def test_peeks():
    assert make_schedule("eager").peek(True)
    assert not make_schedule("eager").peek(False)
    assert not Late().peek(True)
    draws = {Seeded(1).peek(True) for _ in range(3)} | {
        s.peek(True) for s in [Seeded(2)] * 40
    }
    assert draws == {True, False}
    assert not any(s.peek(False) for s in [Seeded(3)] * 40)


def test_nothing_to_choose():
    assert Seeded(0).choose([], []) is None
    assert Late().choose([], []) is None
    assert make_schedule("eager").choose([], []) is None
