"""Rings of barriers: phases, commit and release, misuse, and wrong counts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from fp4ref.errors import DeadlockError, MbarrierFault, PipelineMisuse
from fp4ref.gemm.pipeline import (
    Consumer,
    PipelineState,
    Producer,
    Ring,
    arrive_on_empty,
    arrive_on_full,
    committed_by_tma,
)
from fp4ref.hardware import mbarrier, named_barrier, smem
from fp4ref.hardware.machine import Machine
from fp4ref.hardware.schedule import make_schedule
from fp4ref.hardware.sm import Blocked, Cta, Role, Warp
from fp4ref.trace import Recorder, Trace

Body = Iterator[Blocked]
DATA = 0x1000
"""Offset of one 4-byte word for each stage."""


def ring_at(base: int, stages: int, full: int = 32, empty: int = 32) -> Ring:
    return Ring.at("ring", base, base + 8 * stages, stages, (full, empty))


def launch(
    ring_of: Callable[[int], Ring],
    *bodies: Callable[[Warp, Ring], Any],
    schedule: str | int = "eager",
) -> Trace:
    """Run one CTA whose warp 0 initialises the ring before any body goes on."""

    def role(body: Callable[[Warp, Ring], Any]) -> Role:
        def run(warp: Warp) -> Any:
            ring = ring_of(warp.cta.smem_base)
            if warp.index == 0:
                ring.init(warp)
            yield from named_barrier.sync(warp, 0, 32 * len(bodies))
            yield from body(warp, ring)

        return run

    def kernel(cta: Cta) -> list[Role]:
        return [role(body) for body in bodies]

    recorder = Recorder()
    machine = Machine(1, make_schedule(schedule), recorder=recorder)
    machine.launch(kernel, (1, 1, 1))
    return recorder.trace


def word(value: int) -> Any:
    return np.array([value], "<u4").view(np.uint8)


def producer_of(count: int) -> Callable[[Warp, Ring], Any]:
    """Write 0, 1, 2, ... into the stages."""

    def body(warp: Warp, ring: Ring) -> Any:
        producer = Producer(warp, ring, arrive_on_full(32))
        for k in range(count):
            with (yield from producer.acquire()) as stage:
                smem.st(warp, warp.cta.smem_base + DATA + 4 * stage.index, word(k))
        yield from producer.tail()

    return body


def consumer_of(count: int, seen: list[int]) -> Callable[[Warp, Ring], Any]:
    def body(warp: Warp, ring: Ring) -> Any:
        consumer = Consumer(warp, ring, arrive_on_empty(32))
        for _ in range(count):
            with (yield from consumer.wait()) as stage:
                at = warp.cta.smem_base + DATA + 4 * stage.index
                seen.append(int(smem.ld(warp, at, 4).view("<u4")[0]))

    return body


@pytest.mark.parametrize("stages", [1, 2, 3, 5])
@pytest.mark.parametrize("schedule", ["eager", "late", *range(40)])
def test_a_consumer_sees_every_item_once_and_in_order(
    stages: int, schedule: str | int
) -> None:
    seen: list[int] = []
    launch(
        lambda base: ring_at(base, stages),
        producer_of(17),
        consumer_of(17, seen),
        schedule=schedule,
    )
    assert seen == list(range(17))


@pytest.mark.parametrize("seed", range(20))
def test_two_consumers_hold_a_stage_until_both_are_done(seed: int) -> None:
    first: list[int] = []
    second: list[int] = []
    launch(
        lambda base: ring_at(base, 2, empty=64),
        producer_of(9),
        consumer_of(9, first),
        consumer_of(9, second),
        schedule=seed,
    )
    assert first == second == list(range(9))


def parities(trace: Trace, agent: str) -> list[int]:
    return [
        e.operands["parity"]
        for e in trace
        if e.agent == agent and e.operation == "mbarrier.try_wait.parity"
    ]


def test_three_stages_take_the_parities_of_the_text() -> None:
    """A consumer waits for 0 0 0 1 1 1 0 0; a producer for the opposite."""
    trace = launch(lambda base: ring_at(base, 3), producer_of(8), consumer_of(8, []))
    assert parities(trace, "warp1") == [0, 0, 0, 1, 1, 1, 0, 0]
    assert parities(trace, "warp0")[:8] == [1, 1, 1, 0, 0, 0, 1, 1]


def test_a_state_wraps_with_its_phase() -> None:
    for stages in (1, 2, 3, 7):
        state = PipelineState()
        for count in range(50):
            assert (state.index, state.phase, state.count) == (
                count % stages,
                count // stages % 2,
                count,
            )
            state.advance(stages)


def test_full_barriers_come_before_empty_ones() -> None:
    ring = Ring.at("x", 0x400, 0x418, 3, (1, 128))
    assert ring.full == (0x400, 0x408, 0x410)
    assert ring.empty == (0x418, 0x420, 0x428)
    assert (ring.stages, ring.full_count, ring.empty_count) == (3, 1, 128)


def test_leaving_the_block_commits() -> None:
    trace = launch(lambda base: ring_at(base, 2), producer_of(1), consumer_of(1, []))
    arrivals = [e for e in trace if e.operation == "mbarrier.arrive"]
    assert [(e.agent, e.barrier[0].label) for e in arrivals] == [
        ("warp0", "ring.full[0]"),
        ("warp1", "ring.empty[0]"),
    ]


def test_an_error_in_the_block_does_not_commit() -> None:
    """A stage that was left by an exception must not look full."""

    class BrokenOff(Exception):
        pass

    phases: list[bool] = []

    def body(warp: Warp, ring: Ring) -> Any:
        producer = Producer(warp, ring, arrive_on_full(32))
        stage = yield from producer.acquire()
        with pytest.raises(BrokenOff), stage:
            raise BrokenOff
        phases.append(mbarrier.test_wait(warp, stage.full, 0))

    launch(lambda base: ring_at(base, 2), body)
    assert phases == [False]


@pytest.mark.parametrize("side", [Producer, Consumer])
def test_entering_a_stage_while_one_is_open_is_misuse(side: Any) -> None:
    def body(warp: Warp, ring: Ring) -> Any:
        for address in ring.full:
            mbarrier.arrive(warp, address, 32)
        pipeline = side(warp, ring, lambda w, s: None)
        enter = pipeline.acquire if side is Producer else pipeline.wait
        with (yield from enter()):
            yield from enter()

    with pytest.raises(PipelineMisuse) as caught:
        launch(lambda base: ring_at(base, 2), body)
    text = str(caught.value)
    assert "ring" in text
    assert "enters stage 1 while the stage before is still open" in text
    assert "leave its with block first" in text


def test_the_next_stage_may_be_peeked_at_while_one_is_open() -> None:
    def body(warp: Warp, ring: Ring) -> Any:
        producer = Producer(warp, ring, committed_by_tma)
        with (yield from producer.acquire()):
            producer.peek()
        with (yield from producer.acquire()):
            pass

    trace = launch(lambda base: ring_at(base, 2), body)
    waits = [e.operation for e in trace if "_wait" in e.operation]
    assert waits == ["mbarrier.try_wait.parity", "mbarrier.test_wait.parity"]


def test_a_peek_that_said_no_is_followed_by_a_wait() -> None:
    """`late` never sees a phase early, so every entry must wait as well."""

    def body(warp: Warp, ring: Ring) -> Any:
        producer = Producer(warp, ring, committed_by_tma)
        producer.peek()
        with (yield from producer.acquire()):
            pass

    trace = launch(lambda base: ring_at(base, 2), body, schedule="late")
    waits = [
        (e.operation, e.operands.get("done")) for e in trace if "_wait" in e.operation
    ]
    assert waits == [
        ("mbarrier.test_wait.parity", False),
        ("mbarrier.try_wait.parity", None),
    ]


def test_a_tail_waits_for_the_last_release() -> None:
    trace = launch(
        lambda base: ring_at(base, 3), producer_of(5), consumer_of(5, []), schedule=3
    )
    released = [
        e.step for e in trace if e.agent == "warp1" and e.operation == "mbarrier.arrive"
    ]
    last_wait = max(e.step for e in trace if e.agent == "warp0")
    assert len(released) == 5
    assert last_wait > released[-1]


def test_an_empty_count_above_the_real_arrivals_deadlocks_by_name() -> None:
    """B28: 128 arrivals expected, 32 come: the producer hangs on its second round."""
    with pytest.raises(DeadlockError) as caught:
        launch(
            lambda base: ring_at(base, 3, empty=128),
            producer_of(8),
            consumer_of(8, []),
        )
    text = str(caught.value)
    assert "ring.empty[0]" in text
    assert "96 of 128 arrivals" in text
    assert "released by cta (0, 0, 0) warp1" in text


def test_a_producer_with_the_consumers_phase_deadlocks_at_once() -> None:
    """B28: on a fresh barrier parity 0 blocks."""

    def body(warp: Warp, ring: Ring) -> Any:
        producer = Producer(warp, ring, arrive_on_full(32))
        producer.state.phase = 0
        with (yield from producer.acquire()):
            pass

    with pytest.raises(DeadlockError) as caught:
        launch(lambda base: ring_at(base, 3), body, consumer_of(1, []))
    text = str(caught.value)
    assert "ring.empty[0]) parity 0" in text
    assert "nobody has arrived on it so far" in text
    assert "ring.full[0]) parity 0" in text


def test_a_whole_warp_arriving_on_a_count_of_one_is_a_fault() -> None:
    """B29: 32 arrivals would flip the phase 32 times, and block the waiter."""
    with pytest.raises(MbarrierFault, match="arrival count 32, but 1 pending"):
        launch(
            lambda base: ring_at(base, 3, full=1), producer_of(1), consumer_of(1, [])
        )


def test_an_uncommitted_stage_deadlocks_its_consumer() -> None:
    def body(warp: Warp, ring: Ring) -> Any:
        producer = Producer(warp, ring, committed_by_tma)
        with (yield from producer.acquire()):
            pass

    with pytest.raises(DeadlockError, match=r"ring\.full\[0\]"):
        launch(lambda base: ring_at(base, 2), body, consumer_of(1, []))
