"""lesson_15: exercises of the CTA pair; three of the answers are read from runs."""

from __future__ import annotations

from functools import cache

import numpy as np

from fp4ref.gemm.config import TILE_K, TILE_M, GemmConfig
from fp4ref.gemm.partition import operand_map, scale_map
from fp4ref.gemm.plan import plan
from fp4ref.lessons.exercise import exercise
from fp4ref.lessons.pair_programs import PairRun, run_clc, run_lanes, run_multicast
from fp4ref.trace import Event


@exercise(
    "15.1",
    title="Bytes of a stage of example 72a",
    frames=("8.4",),
    hints=(
        "Add what lands in both CTAs: one barrier counts all of it.",
        "A: 128 rows in each. B: 256 rows, half of them in each. SFA: own rows.",
        "SFB is whole in both CTAs: two atoms of 128 rows along N, four along K.",
    ),
    # One CTA's share; SFB once; B whole in both; scales forgotten.
    wrong=(38_912, 73_728, 110_592, 65_536, 36_864),
    unit="bytes",
)
def stage_nbytes() -> int:
    """Ask the tensor maps."""
    n = 2 * TILE_M
    operand = operand_map(0, n, TILE_K, 1, (TILE_K, TILE_M))
    p = plan(GemmConfig())
    scales = [scale_map(0, n, TILE_K, 1, p, rows) for rows in (TILE_M, n)]
    return 2 * sum(each.box_nbytes for each in (operand, operand, *scales))


@exercise(
    "15.2",
    title="Where D[10, 50] is with M = 128",
    frames=("8.4",),
    hints=(
        "Each CTA has 64 rows, and its TMEM has 128 lanes.",
        "The second half of N is in lanes 64 to 127 of the same columns.",
        "N is 64: column 50 of D is the 18th of its half, counted from 0.",
    ),
    why=(
        "Lanes from 64 up hold the second half of N, and column 50 is the 18th of it, "
        "counted from 0."
    ),
    # As with M = 256; the peer has the half; the column of the whole N.
    wrong=((0, 10, 50), (1, 10, 18), (0, 74, 50), (0, 10, 18), (1, 74, 18)),
)
def cell_of_d() -> tuple[int, int, int]:
    """Look for the mark."""
    for rank, cells in enumerate(run_lanes(128)):
        for lane, column in np.argwhere(cells == 10 + 256 * 50):
            return rank, int(lane), int(column)
    raise AssertionError("every element of D is somewhere")


@cache
def multicast() -> PairRun:
    """Run a box through a cluster of eight."""
    return run_multicast()


def landings(run: PairRun, operation: str, issuer: int) -> list[Event]:
    """Return where the one operation of a rank landed, in order."""
    (issue,) = (
        e
        for e in run.trace
        if e.operation.startswith(operation) and e.kind == "issue" and e.sm == issuer
    )
    return [e for e in run.trace if e.kind == "land" and e.issued == issue.step]


@exercise(
    "15.3",
    title="Who counts the bytes of the peer's box",
    frames=("3.7", "8.4"),
    hints=(
        "The mask says where the box lands, not where it is counted.",
        "The named barrier is in an even CTA.",
        "In each pair that gets a box, the CTA of that parity counts it.",
    ),
    why="In each pair that gets the box, the barrier of the leader counts its bytes.",
    # The receivers; the issuer's leader; the issuer; all.
    wrong=([1, 3, 5, 7], [0], [1], list(range(8))),
)
def counting_ranks() -> list[int]:
    """Read from the trace whose barrier was told of rank 1's box."""
    found = landings(multicast(), "cp.async.bulk.tensor", issuer=1)
    return sorted(int(b.space.removeprefix("smem")) for e in found for b in e.barrier)


@exercise(
    "15.4",
    title="One request of a cluster of eight",
    frames=("1.10", "2.4"),
    hints=(
        "One thread of the cluster executes the instruction.",
        "Every CTA gets the answer at the same offset of its own shared memory.",
        "Each of the 16 bytes is counted by the barrier of the CTA it lands in.",
    ),
    # Each asks for itself; only the asker learns; the bytes of one answer.
    wrong=((8, 8, 128), (1, 1, 16), (1, 8, 16), (8, 8, 16)),
)
def request() -> tuple[int, int, int]:
    """Count issues, landings and bytes."""
    run, _ = run_clc()
    found = landings(run, "clusterlaunchcontrol.try_cancel", issuer=0)
    asked = run.trace.select(operation="clusterlaunchcontrol.try_cancel")
    issues = sum(e.kind == "issue" for e in asked)
    nbytes = sum(w.size for e in found for w in e.writes if w.size == 16)
    return issues, len(found), nbytes
