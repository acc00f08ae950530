"""lesson_05: exercises about TMEM addresses, columns, lanes and scales."""

from __future__ import annotations

from collections.abc import Sequence

from fp4ref import GemmConfig, frames
from fp4ref.gemm.mma_warp import TMEM_COLUMNS
from fp4ref.gemm.plan import plan
from fp4ref.gemm.plan.warps import WARP_THREADS
from fp4ref.hardware import tmem
from fp4ref.layout.tmem_scales import tmem_scale_position
from fp4ref.lessons.exercise import exercise


@exercise(
    "05.1",
    title="An address",
    frames=("4.3", "4.4"),
    hints=(
        "An address is two numbers in one word: the lane above, the column below.",
        "Row i of an accumulator is in lane i; column j of it is j columns after its "
        "first one.",
        "The second accumulator starts at column 0x80: `lane << 16 | column`.",
    ),
    wrong=(
        # Bytes from 0x1000, as the document counts them.
        0x2000 + (37 * 128 + 5) * 4,
        0x2000,
        # Bytes of a linear memory; columns as bytes; lane and column exchanged.
        37 * 2048 + (0x80 + 5) * 4,
        37 << 16 | (0x80 + 5) * 4,
        (0x80 + 5) << 16 | 37,
        # The first accumulator.
        37 << 16 | 5,
    ),
)
def address() -> int:
    """Ask the column map."""
    return tmem.address(37, plan(GemmConfig()).tmem.accumulators[1] + 5)


def _budget(used: int, allocated: int, threads: int, sfa: int) -> dict[str, int]:
    return {"used": used, "allocated": allocated, "threads": threads, "sfa": sfa}


@exercise(
    "05.2",
    title="Columns and threads",
    frames=("4.2", "4.3"),
    hints=(
        "Draw the map: two accumulators of 128 columns, two sets of SFA and SFB.",
        "A scale takes a byte and a cell four of them, one row's scales for K = 64; "
        "the rows of a tile sit 32 to a column.",
        "There are 512 columns in all, and only powers of two can be allocated. The "
        "`.sync.aligned` of `tcgen05.alloc` means a whole warp.",
    ),
    wrong=(
        # 1024 columns by one thread, 16 scales in 4 columns.
        _budget(1024, 1024, 1, 4),
        _budget(320, 1024, 32, 16),
        _budget(320, 512, 1, 16),
        _budget(272, 512, 32, 4),
        # Exactly what is used; CUTLASS's single set of scales.
        _budget(320, 320, 32, 16),
        _budget(288, 512, 32, 16),
    ),
)
def column_budget() -> dict[str, int]:
    """Ask the kernel and its configuration."""
    return _budget(
        plan(GemmConfig()).tmem.end,
        TMEM_COLUMNS,
        WARP_THREADS,
        frames.show("4.3")["sfa_columns"],
    )


def _scales() -> Sequence[tuple[int, int]]:
    return [(row, s) for row in range(0, 128, 3) for s in range(4)]


@exercise(
    "05.3",
    title="Where a scale sits",
    frames=("4.3", "6.6.4"),
    hints=(
        "Look at what lane 5 showed: four rows, 32 apart, in four columns.",
        "The copy repeats everything in each quarter of the lanes: the four lanes are "
        "32 apart.",
        "The lane of the first quarter is `row % 32`, the column `row // 32`, the byte "
        "`s`.",
    ),
    wrong=(
        # Row-major: a lane for each row, a scale for each column, no copies.
        lambda row, s: ((row, row, row, row), s, 0),
        lambda row, s: ((row % 32,), row // 32, s),
        # Four neighbouring rows in one lane.
        lambda row, s: (tuple(row // 4 + 32 * q for q in range(4)), row % 4, s),
        # Row and scale exchanged inside the atom.
        lambda row, s: (tuple(row % 32 + 32 * q for q in range(4)), s, row // 32),
    ),
    cases=_scales,
)
def scale_place(row: int, s: int) -> tuple[tuple[int, int, int, int], int, int]:
    """Ask the layout."""
    place = tmem_scale_position(row, s)
    return place.lanes, place.column, place.byte


def _threads() -> Sequence[tuple[int, int]]:
    return [(w, t) for w in range(8) for t in range(0, 32, 5)]


@exercise(
    "05.4",
    title="Whose row",
    frames=("4.5",),
    hints=(
        "Four warps cover 128 lanes. Which lanes may warp 5 touch?",
        "With `32x32b` the thread's number is the lane inside the quarter.",
        "The quarter is the warp's number modulo 4: `32 * (w % 4) + t`.",
    ),
    wrong=(
        # 4 x 4 values for each thread of one warp.
        lambda w, t: 4 * (t // 4),
        lambda w, t: t,
        # Numbered from the first epilogue warp, or from the first warp.
        lambda w, t: 32 * (w - 4) + t,
        lambda w, t: 32 * w + t,
    ),
    cases=_threads,
)
def row(w: int, t: int) -> int:
    """Read the fragment of a 32x32b load in the warp's lane quarter."""
    lanes, _ = tmem.fragment("32x32b", 1)
    return WARP_THREADS * (w % 4) + int(lanes[t, 0])
