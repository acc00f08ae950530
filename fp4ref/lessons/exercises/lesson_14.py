"""lesson_14: the answers to the riddles, each read from a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fp4ref.errors import DeadlockError
from fp4ref.evidence.faults import Catch, Fault, run_fault, run_twin
from fp4ref.evidence.faults.gallery import Form, FormName
from fp4ref.evidence.faults.riddles import RIDDLES
from fp4ref.gemm.config import TILE_K
from fp4ref.hardware.tensor_memory import COLUMNS
from fp4ref.lessons.exercise import exercise
from fp4ref.trace import Event, Range, Trace

FORM: FormName = "emulator"


def riddle(
    number: int, *hints: str, wrong: tuple[Any, ...]
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare the answer to a riddle; the last hint is where to look."""
    mistake = RIDDLES[number - 1].fault
    return exercise(
        f"14.{number}",
        title=f"{mistake.title}.",
        hints=(*hints, mistake.evidence),
        wrong=wrong,
        why=mistake.cause,
    )


def final_d(trace: Trace) -> NDArray[np.float32]:
    """Return D, (M, N) float32, as a run has left it in global memory."""
    shape = trace.meta["shape"]
    at = {name: Range("gmem", *where) for name, *where in trace.meta["allocations"]}
    final = trace.at(len(trace) - 1).read(at["D"])
    d: NDArray[np.float32] = final[0].view(np.float32)
    return d.reshape(shape["m"], shape["n"])


def labels(trace: Trace) -> dict[int, str]:
    """Return the name of each mbarrier by its address."""
    inits = trace.select(operation="mbarrier.init")
    return {e.operands["mbar"]: e.barrier[0].label for e in inits}


@cache
def _clean(number: int) -> Trace:
    """Events of the clean twin of a riddle."""
    trace = run_twin(RIDDLES[number - 1].fault, FORM).trace
    assert trace is not None
    return trace


def _waits(trace: Trace, agent: str) -> Iterator[Event]:
    """Waits of a warp that end, with or without sleep."""
    for event in trace.select(agent=agent, operation="mbarrier.t"):
        if event.operands.get("done", True):
            yield event


def _arrivals(trace: Trace, label: str) -> list[Event]:
    """Events that take an arrival away from one barrier."""
    return [
        event
        for event in trace
        for change in event.barrier
        if change.label == label
        and "init" not in event.operation
        and (change.after[1] < change.before[1] or change.after[0] != change.before[0])
    ]


@riddle(
    1,
    "Follow the tx-count of one stage, round by round: what is left over goes to the "
    "next phase.",
    "Round 1 leaves -2,048. Round 2 reaches 0 after A and B, and leaves -4,096. Can "
    "round 3 still hit 0?",
    wrong=(4, 3, 6, 1280),
)
def first_k_tiles_that_hang() -> int:
    """Make K longer until the machine stands still."""
    mistake, k_tiles = RIDDLES[0].fault, 0
    while True:
        k_tiles += 1
        longer = replace(mistake, shape=(*mistake.shape[:2], TILE_K * k_tiles))
        if isinstance(run_fault(longer, FORM).fault, DeadlockError):
            return k_tiles


@riddle(
    2,
    "Two things must come to 0: pending arrivals and the tx-count. Which of them did "
    "the bytes change?",
    wrong=("mbarrier.arrive", "mbarrier.complete_tx", "mbarrier.expect_tx"),
)
def arrival_of_the_producer() -> str:
    """Find what takes the arrival away in the clean twin."""
    return _arrivals(_clean(2), "mainloop.full[0]")[0].operation


@riddle(
    3,
    "A fresh barrier is in phase 0. A wait passes if its parity is not that of the "
    "phase in progress.",
    wrong=([0, 0, 1, 1], [1, 0, 1, 0], [1, 1, 1, 1], [0, 1, 0, 1]),
)
def parities_of_the_producer() -> list[int]:
    """Parity of the load warp's wait for each of the four k-tiles."""
    trace = _clean(3)
    name = labels(trace)
    parities = [
        event.operands["parity"]
        for event in _waits(trace, "warp2")
        if name[event.operands["mbar"]].startswith("mainloop.empty")
    ]
    return parities[:4]


@riddle(
    4,
    "The report has the arrivals of one warp. Who else arrives on accumulator.empty?",
    wrong=(1, 4, 32, 160),
)
def arrivals_of_the_epilogue() -> int:
    """Add up the arrivals of one phase of the clean twin."""
    arrived = _arrivals(_clean(4), "accumulator.empty[0]")
    return sum(int(event.operands["count"]) for event in arrived)


@riddle(
    5,
    "Who reads the columns last, and how does he say that he has?",
    "Each ring has a full and an empty barrier; the MMA warp is this ring's producer.",
    wrong=("accumulator.full", "mainloop.empty", "mainloop.full", "clc.empty"),
)
def last_wait_before_dealloc() -> str:
    """Find the last barrier that the warp waited for in the clean twin."""
    trace = _clean(5)
    (freed,) = trace.select(operation="tcgen05.dealloc")
    before = [e for e in _waits(trace, freed.agent) if e.step < freed.step]
    return labels(trace)[before[-1].operands["mbar"]].partition("[")[0]


@riddle(
    6,
    "A fence has no effect on what another thread wrote.",
    wrong=([4], [5, 6, 7], [0, 4, 5, 6, 7]),
)
def warps_that_fence() -> list[int]:
    """Warps that execute the fence after their stores, in the clean twin."""
    trace = _clean(6)
    stored = {e.agent: e.step for e in reversed(trace.select(operation="st.shared"))}
    fences = trace.select(operation="fence.proxy.async")
    warps = {e.agent for e in fences if e.step > stored.get(e.agent, e.step)}
    return sorted(int(warp.removeprefix("warp")) for warp in warps)


@riddle(
    7,
    "The operand counts threads: of those that wait and of those that only arrive.",
    wrong=(
        {0: 256, 1: 128, 6: 128},
        {0: 256, 1: 128, 6: 32},
        {0: 32, 1: 32, 6: 32},
        {0: 8, 1: 4, 6: 5},
    ),
)
def threads_of_the_named_barriers() -> dict[int, int]:
    """Operands of the clean twin's barriers."""
    rounds = _clean(7).select(operation="bar.")
    return {e.operands["barrier"]: e.operands["threads"] for e in rounds}


@riddle(
    8,
    "Follow the waits from the warp that waits for clc.full[0]: who would complete it, "
    "and for what does that one wait?",
    wrong=(
        ("clc.full[0]", 1, 1),
        ("throttle.full[0]", 1, 32),
        ("throttle.full[0]", 2, 1),
        ("throttle.empty[0]", 1, 32),
    ),
)
def what_the_scheduler_waits_for() -> tuple[str, int, int]:
    """Root of the deadlock, and who arrives there in the clean twin."""
    root = getattr(run_fault(RIDDLES[7].fault, FORM).fault, "root", None)
    assert root is not None
    label = root.where.partition("(")[2].rstrip(")")
    arrival = _arrivals(_clean(8), label)[0]
    warp = int(arrival.agent.removeprefix("warp"))
    return label, warp, int(arrival.operands["count"])


@riddle(
    9,
    "A scale atom is 128 rows by 4 scales. How many rows of scales share a column?",
    wrong=([256, 256, 256], [257, 258, 259], [272, 288, 304], [288, 320, 352]),
)
def columns_of_sfa() -> list[int]:
    """SFA's columns in the first k-tile's MMAs, but for the first."""
    found = [e.operands["sfa_tmem"] for e in _clean(9).select(operation="tcgen05.mma")]
    return list(dict.fromkeys(found))[1:4]


@riddle(
    10,
    "The chunk's number is XORed with the row's, modulo 8.",
    "Which rows have a number that changes nothing?",
    wrong=([0], [0, 1, 2, 3, 4, 5, 6, 7], [], [0, 4, 8, 12]),
)
def rows_that_stay_right() -> list[int]:
    """Compare the D of both runs."""
    swizzled, plain = (
        final_d(_clean(10)),
        final_d(_of(run_fault(RIDDLES[9].fault, FORM))),
    )
    return [row for row in range(16) if np.array_equal(swizzled[row], plain[row])]


@riddle(
    11,
    "Count for one CTA: its row of A, its half of B, and what comes by the mask.",
    wrong=((256, 256), (384, 384), (128, 384), (256, 512)),
)
def bytes_of_a_pair() -> tuple[int, int]:
    """Bytes that CTA 0 loads for itself, and those that land in its shared memory."""
    landed = [e for e in _clean(11) if e.kind == "land" and "load" in e.operation]
    here = [e for e in landed for w in e.writes if w.space == "smem0" and w.size > 8]
    own = sum(int(e.operands["tx_bytes"]) for e in here if e.operands["coords"][1] == 0)
    return own, sum(int(e.operands["tx_bytes"]) for e in here)


@riddle(
    12,
    "The sum of both may not exceed the columns of an SM.",
    "An allocation is a power of two.",
    wrong=(384, 512, 128),
)
def largest_first_allocation() -> int:
    """Ask for fewer and fewer columns until the second allocation returns."""
    mistake = RIDDLES[11].fault
    form, columns = mistake.forms["emulator"], COLUMNS
    while isinstance(
        run_fault(_with(mistake, form, columns), FORM).fault, DeadlockError
    ):
        columns //= 2
    return columns


def _with(mistake: Fault, form: Form, columns: int) -> Fault:
    """Let the first allocation of the last riddle ask for other columns."""
    wrong = form.change.wrong.replace(str(COLUMNS), str(columns))
    other = replace(form, change=replace(form.change, wrong=wrong))
    return replace(mistake, forms={"emulator": other})


def _of(caught: Catch) -> Trace:
    assert caught.trace is not None
    return caught.trace
