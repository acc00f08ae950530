"""gmem: a word of global memory by which CTAs wait for each other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from on_machine import random_bytes

from fp4ref.errors import DeadlockError
from fp4ref.hardware import gmem
from fp4ref.hardware.machine import Machine
from fp4ref.hardware.order.race import RaceFault
from fp4ref.hardware.schedule import make_schedule

DATA = random_bytes(128 * 4).reshape(32, 16)
LANES = 16 * np.arange(32, dtype=np.int64)


class Message:
    """The CTAs before the last one add 1 to a word; the last one reads what they left.

    Each has 512 bytes of its own.
    """

    def __init__(self, schedule: Any, writers: int = 2) -> None:
        self.machine = Machine(writers + 1, make_schedule(schedule), races="raise")
        self.writers = writers
        self.word = self.machine.gmem.upload("word", np.zeros(1, "<u4"))
        self.at = self.machine.gmem.allocate("data", 512 * writers)
        self.read: list[Any] = []

    def writer(self, warp: Any) -> Any:
        """Store, then give the word on."""
        gmem.st(warp, self.at + 512 * warp.cta.ctaid[0] + LANES, DATA)
        gmem.red_release(warp, self.word, 1)
        yield from ()

    def reader(self, warp: Any) -> Any:
        """Wait for the word, then load."""
        yield from gmem.wait_eq(warp, self.word, self.writers)
        for i in range(self.writers):
            self.read.append(gmem.ld_each(warp, self.at + 512 * i + LANES, 16))

    def run(self) -> None:
        """Launch the CTAs."""
        self.machine.launch(
            lambda cta: [self.reader if cta.ctaid[0] == self.writers else self.writer],
            (self.writers + 1, 1, 1),
        )


@pytest.mark.parametrize("schedule", ["eager", "late", *range(6)])
def test_a_reader_of_the_sum_comes_after_every_writer(schedule: Any) -> None:
    message = Message(schedule)
    message.run()
    found = message.machine.gmem.contents(message.word, 4).view("<u4")
    assert found.tolist() == [2]
    for data in message.read:
        np.testing.assert_array_equal(data, DATA)


@pytest.mark.parametrize("schedule", ["eager", "late", *range(6)])
def test_a_reader_that_does_not_wait_races(schedule: Any) -> None:
    message = Message(schedule)
    message.machine.gmem.poke(message.at, np.zeros(1024, np.uint8))

    def reader(warp: Any) -> Any:
        gmem.ld_each(warp, message.at + LANES, 16)
        yield from ()

    message.reader = reader  # type: ignore[method-assign]
    with pytest.raises(RaceFault, match="missing synchronisation"):
        message.run()


def test_a_word_that_passes_the_value_is_waited_for_in_vain() -> None:
    """The report names the word, the value and what it is."""
    message = Message("eager")
    message.machine.gmem.poke(message.word, np.array([1], "<u4").view(np.uint8))
    with pytest.raises(DeadlockError, match=r"\(word \+ 0\) to be 2: it is 3"):
        message.run()


def test_each_lane_loads_where_it_says() -> None:
    """Lanes apart and out of order."""
    on = Machine(1)
    address = on.gmem.upload("A", DATA)
    order = np.random.default_rng(1).permutation(32)[:9]

    def role(warp: Any) -> Any:
        found = gmem.ld_each(warp, address + 16 * order, 16)
        np.testing.assert_array_equal(found, DATA[order])
        yield from ()

    on.launch(lambda cta: [role], (1, 1, 1))


@pytest.mark.parametrize("schedule", ["eager", "late", 1])
def test_maxima_of_all_warps_come_in_any_order(schedule: Any) -> None:
    machine = Machine(2, make_schedule(schedule), races="raise")
    start = np.array([5, 0, 0xFFFFFFF0, 7], "<u4")
    at = machine.gmem.upload("maxima", start)

    def larger(warp: Any) -> Any:
        value = 3 + 4 * warp.cta.ctaid[0]
        words = at + 4 * np.arange(4)
        gmem.red_max(warp, words, np.full(4, value, np.uint32))
        yield from ()

    machine.launch(lambda cta: [larger, larger], (3, 1, 1))
    found = machine.gmem.contents(at, 16).view("<u4")
    assert found.tolist() == np.maximum(start, 11).tolist()
