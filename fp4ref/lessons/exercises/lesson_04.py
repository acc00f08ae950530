"""lesson_04: exercises about mbarriers and the rings that they make."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import fp4ref
from fp4ref import GemmConfig, frames
from fp4ref.gemm.pipeline import PipelineState
from fp4ref.gemm.plan import plan
from fp4ref.lessons.exercise import exercise

BARRIERS = ("mainloop.full", "mainloop.empty", "accumulator.full", "accumulator.empty")


def _four(*values: object) -> dict[str, object]:
    return dict(zip(BARRIERS, values, strict=True))


@exercise(
    "04.1",
    title="Arrival counts",
    frames=("1.2", "1.4", "1.7", "1.9"),
    hints=(
        "Count arrivals, not threads, and not bytes: who executes the instruction, and "
        "how often in one phase?",
        "One elected lane of the load warp executes `mbarrier.arrive.expect_tx`; a "
        "`tcgen05.commit` is one arrival, whoever waits for it.",
        "Only the accumulator's empty barrier is arrived on by threads: all those of "
        "the four epilogue warps.",
    ),
    wrong=(
        # The document's pair (32, 1) of the empty barrier, and one epilogue warp.
        _four(1, 32, 1, 32),
        _four(1, 32, 1, 128),
        # One arrival for each of the four TMA copies.
        _four(5, 1, 1, 128),
        _four(32, 1, 32, 128),
    ),
)
def arrival_counts() -> dict[str, object]:
    """Read the counts of both rings from the frame index."""
    mainloop, accumulator = frames.show("1.2"), frames.show("1.9")
    return _four(
        mainloop["full_count"],
        mainloop["empty_count"],
        accumulator["full_count"],
        accumulator["empty_count"],
    )


@exercise(
    "04.2",
    title="Bytes of a stage, and stages of example 72b",
    frames=("1.1", "1.2"),
    hints=(
        "A stage holds a 128 x 256 box of A, one of B, and the scales of both.",
        "E2M1 takes half a byte. There is one scale byte for each row and 16 elements, "
        "not for each row.",
        "Stages: (232,448 - 160 - 67,584) // (bytes + 16).",
    ),
    why=(
        "A and B have two elements in a byte, SFA and SFB a byte for 16 elements. "
        "What the epilogue leaves holds four such stages."
    ),
    wrong=(
        (32_800, 20),
        (32_768, 4),
        (36_864, 20),
        # Without the epilogue's memory; beside an epilogue with f32 D and no C.
        (36_864, 6),
        (36_864, 5),
    ),
)
def stage_budget() -> tuple[int, int]:
    """Ask the configuration."""
    config = GemmConfig.example_72b()
    return plan(config).stage_tx_bytes, plan(config).mainloop_stages


@exercise(
    "04.3",
    title="Who arrives",
    frames=("1.4", "1.6", "1.7", "1.9"),
    hints=(
        "`run.trace` has the change of every barrier: look for events after which "
        "fewer arrivals are pending, or another phase has begun.",
        "A TMA copy credits bytes and brings no arrival. Who says how many bytes?",
        "What the tensor core must finish first is signalled by `tcgen05.commit`; what "
        "threads have finished, by `mbarrier.arrive`.",
    ),
    wrong=(
        _four(
            "mbarrier.arrive.umma",
            "mbarrier.arrive",
            "mbarrier.arrive",
            "mbarrier.arrive",
        ),
        _four(
            "cp.async.bulk.tensor.3d.load",
            "tcgen05.commit",
            "tcgen05.commit",
            "mbarrier.arrive",
        ),
        _four(
            "mbarrier.arrive.expect_tx",
            "mbarrier.arrive",
            "tcgen05.commit",
            "mbarrier.arrive",
        ),
        _four(
            "mbarrier.arrive.expect_tx",
            "tcgen05.commit",
            "tcgen05.mma",
            "tcgen05.commit",
        ),
    ),
)
def arrivals() -> dict[str, object]:
    """Find the operations that take an arrival away, in a run of one k-tile."""
    ones = fp4ref.quantize(np.ones((128, 256), np.float32))
    trace = fp4ref.run(ones, ones, sms=1).trace
    assert trace is not None
    found: dict[str, object] = {}
    for event in trace:
        for change in event.barrier:
            ring = change.label.partition("[")[0]
            (phase, pending, _), (new_phase, left, _) = change.before, change.after
            # Bytes alone can complete a phase; then nothing was pending.
            arrived = left < pending or (new_phase != phase and pending > 0)
            if ring in BARRIERS and arrived:
                found[ring] = event.operation
    return {ring: found[ring] for ring in BARRIERS}


def _rounds() -> Sequence[tuple[str, int, int]]:
    return [
        (role, k, stages)
        for role in ("producer", "consumer")
        for stages in (2, 4, 5)
        for k in range(3 * stages)
    ]


@exercise(
    "04.4",
    title="Which parity to wait for",
    frames=("1.8",),
    hints=(
        "The parity does not change from one stage to the next. When does it?",
        "It flips when the index wraps: after every `stages` k-tiles.",
        "On a fresh barrier parity 1 passes and parity 0 blocks. Which of the two does "
        "a producer need in its first round?",
    ),
    why=(
        "The parity flips once a round. A producer begins with 1, because that passes "
        "on a fresh barrier: every stage is free."
    ),
    wrong=(
        # Both sides start at phase 0.
        lambda role, k, stages: k // stages % 2,
        # A flip at every k-tile, and no flip at all.
        lambda role, k, stages: (k + (role == "producer")) % 2,
        lambda role, k, stages: int(role == "producer"),
        # The sides exchanged.
        lambda role, k, stages: (k // stages + (role == "consumer")) % 2,
    ),
    cases=_rounds,
)
def parity(role: str, k: int, stages: int) -> int:
    """Walk the ring."""
    state = PipelineState(phase=1 if role == "producer" else 0)
    for _ in range(k):
        state.advance(stages)
    return state.phase
