"""lesson_00: exercises of the first run."""

from __future__ import annotations

from functools import cache

import fp4ref
from fp4ref.lessons.exercise import exercise
from fp4ref.walk import load_problem


@cache
def first_run() -> fp4ref.Run:
    """Run the notebook's tile on the emulator."""
    problem = load_problem()
    qa = fp4ref.quantize(problem.x[:128], global_scale="auto")
    qb = fp4ref.quantize(problem.w[:128], global_scale="auto")
    return fp4ref.run(qa, qb, sms=1, schedule=0)


@exercise(
    "00.1",
    title="MMA instructions of one tile",
    frames=("6.6.5",),
    hints=(
        "Each `tcgen05.mma` covers the whole 128 x 128 tile and one piece of K.",
        "The piece is K = 64: 32 bytes of E2M1 codes and four scales of each row.",
        "`emulator.stats` counts every operation by its PTX name.",
    ),
    why=(
        "K of one instruction is 64: 1,536 / 64 of them follow each other, and all "
        "add into one accumulator."
    ),
    # One for each 16 elements, one for each stage, one for each row and stage.
    wrong=(96, 6, 768),
    unit="instructions",
)
def mma_count() -> int:
    """Count what the run issued."""
    return int(first_run().stats["tcgen05.mma"])


@exercise(
    "00.2",
    title="What ends the first phase of mainloop.full[0]",
    frames=("5.4.4", "5.4.8"),
    hints=(
        "The phase ends when no arrival is pending and no byte is missing.",
        "`mbarrier.arrive.expect_tx` brings the only arrival, and announces the bytes.",
        "Whichever of the four copies lands last does it; look which one that was in "
        "this run.",
    ),
    why=(
        "The arrival of `arrive.expect_tx` had come before. A phase ends when the "
        "last bytes that it expects are there, and this copy brought them."
    ),
    wrong=(
        "mbarrier.arrive.expect_tx",
        "mbarrier.arrive",
        "tcgen05.commit",
        "cp.async.bulk.tensor.3d.load",
    ),
)
def completing_operation() -> str:
    """Find the event at which the phase of the barrier changes."""
    trace = first_run().trace
    assert trace is not None
    return next(
        event.operation
        for event in trace
        for change in event.barrier
        if change.label == "mainloop.full[0]" and change.before[0] != change.after[0]
    )
