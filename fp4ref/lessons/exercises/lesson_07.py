"""lesson_07: exercises of the load warp and the MMA warp.

They ask about example 72b's configuration and one tile of eight k-tiles, as the frame
index does; the notebook itself runs six.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

import fp4ref
from fp4ref import frames
from fp4ref.gemm.config import TILE_K, TILE_M, GemmConfig
from fp4ref.gemm.descriptors import K_BLOCKS
from fp4ref.gemm.pipeline import PipelineState
from fp4ref.gemm.plan import plan
from fp4ref.hardware.mbarrier_unit import MbarrierState
from fp4ref.hardware.tcgen05 import MMA_K
from fp4ref.lessons.exercise import exercise
from fp4ref.trace import Event

CONFIG = GemmConfig.example_72b()
K_TILES = 8

Issued = list[tuple[str, int | str]]


@cache
def eight_k_tiles() -> fp4ref.Run:
    """Run one tile of 128 x 128 x 2,048 under the late schedule."""
    rng = np.random.default_rng(7)
    a, b = (
        fp4ref.quantize(rng.standard_normal((TILE_M, K_TILES * TILE_K), np.float32))
        for _ in range(2)
    )
    return fp4ref.run(a, b, config=CONFIG, schedule="late", sms=1)


def _exit_state(phase: int) -> tuple[int, int, int]:
    """Ring state after eight k-tiles, for a side that enters with `phase`."""
    state = PipelineState(phase=phase)
    for _ in range(K_TILES):
        state.advance(plan(CONFIG).mainloop_stages)
    return state.index, state.phase, state.count


def _load_books() -> dict[str, Any]:
    entry = frames.show("5.1")
    second = entry["k_tiles"] - entry["prologue"]
    return {
        "entry": (entry["index"], entry["phase"], entry["count"]),
        "stage bytes": plan(CONFIG).stage_tx_bytes,
        "second call": second,
        "waits": second,
        "exit": _exit_state(entry["phase"]),
        "tile bytes": entry["k_tiles"] * plan(CONFIG).stage_tx_bytes,
    }


@exercise(
    "07.1",
    title="The books of the load warp",
    frames=("5.1", "5.4.1", "5.4.2", "5.4.8", "5.5", "5.6", "5.7", "5.8"),
    hints=(
        "Start with the ring: how many stages of this size fit beside the epilogue?",
        "Four stages. A producer enters with phase 1, and the phase flips each time "
        "the index comes back to 0.",
        "A stage has 128 rows of A and of B in 4 bits, and for each of the 256 rows "
        "16 scales of one byte.",
    ),
    why=(
        "A producer enters with phase 1. Eight k-tiles go twice around a ring of four "
        "stages, and the last four need a stage that was used."
    ),
    # Each believes one thing that the document says.
    wrong=(
        _load_books() | {"entry": (0, 0, 20)},
        _load_books() | {"stage bytes": 32_800},
        _load_books() | {"waits": 0},
        _load_books() | {"exit": (8, 0, 8)},
        _load_books() | {"second call": 0},
        _load_books() | {"tile bytes": 262_400},
    ),
)
def load_books() -> dict[str, Any]:
    """State at entry and exit, bytes, and how often the ring was full."""
    return _load_books()


def _before_any_work() -> dict[str, Any]:
    fresh = MbarrierState(0, 1, 1, 0)
    entry = frames.show("6.1")
    return {
        "producer's token": fresh.phase != frames.show("5.1")["phase"],
        "consumer's token": fresh.phase != entry["mainloop"]["phase"],
        "mainloop": tuple(entry["mainloop"].values()),
        "accumulator": tuple(entry["accumulator"].values()),
    }


@exercise(
    "07.2",
    title="What a peek answers, and where the MMA warp starts",
    frames=("5.3", "6.1", "6.4"),
    hints=(
        "A peek is one `mbarrier.test_wait.parity`. What type has its result?",
        "On a fresh barrier the phase in progress is 0: parity 1 counts as complete.",
        "The MMA warp consumes one ring and produces into the other, and only a "
        "producer starts with phase 1.",
    ),
    wrong=(
        # The token as a pointer to full[0].
        _before_any_work() | {"producer's token": 0x400},
        _before_any_work() | {"consumer's token": 0x400},
        # Both sides alike; and the document's entry states.
        _before_any_work() | {"consumer's token": True},
        _before_any_work() | {"mainloop": (0, 0, 20)},
        _before_any_work() | {"accumulator": (0, 0, 2)},
    ),
)
def before_any_work() -> dict[str, Any]:
    """Tokens of the first peeks on a fresh ring, and the MMA warp's two states."""
    return _before_any_work()


def one_k_tile(k_tile: int) -> Issued:
    """Return what the MMA warp issues in a k-tile, from the trace."""
    trace = eight_k_tiles().trace
    assert trace is not None
    issued = [e for e in trace.select(frame="6.6") if e.kind == "issue"]
    per_k_tile = len(issued) // K_TILES
    return [
        (e.operation, _place(e))
        for e in issued[k_tile * per_k_tile : (k_tile + 1) * per_k_tile]
    ]


def _place(event: Event) -> int | str:
    """Column that is written, or the barrier by name."""
    operands = event.operands
    if event.operation == "tcgen05.commit":
        trace = eight_k_tiles().trace
        assert trace is not None
        landing = next(e for e in trace if e.issued == event.step)
        return landing.barrier[0].label
    return int(operands["d_tmem" if "d_tmem" in operands else "taddr"])


def _two_copies(k_tile: int) -> Issued:
    """One copy for each operand."""
    right = one_k_tile(k_tile)
    return [right[0], right[K_BLOCKS], *right[2 * K_BLOCKS :]]


def _sixteen_mmas(k_tile: int) -> Issued:
    """One MMA for each 16 elements of K."""
    right = one_k_tile(k_tile)
    return [*right[: 2 * K_BLOCKS], *[right[2 * K_BLOCKS]] * 16, right[-1]]


def _byte_address(k_tile: int) -> Issued:
    """The accumulator at byte 0x1000."""
    return [
        (name, 0x1000 if name == "tcgen05.mma" else place)
        for name, place in one_k_tile(k_tile)
    ]


def _plain_arrive(k_tile: int) -> Issued:
    """The warp itself gives the stage back."""
    *before, (_, barrier) = one_k_tile(k_tile)
    return [*before, ("mbarrier.arrive", barrier)]


def _one_set_of_columns(k_tile: int) -> Issued:
    """Scales always in the same columns, as CUTLASS has it."""
    return [*one_k_tile(0)[: 2 * K_BLOCKS], *one_k_tile(k_tile)[2 * K_BLOCKS :]]


def _no_wrap(k_tile: int) -> Issued:
    """A stage for each k-tile."""
    return [*one_k_tile(k_tile)[:-1], ("tcgen05.commit", f"mainloop.empty[{k_tile}]")]


@exercise(
    "07.3",
    title="One k-tile of the MMA warp, instruction by instruction",
    frames=("6.6.4", "6.6.5", "6.6.10", "6.6.12", "6.7"),
    hints=(
        "Scales first, A's before B's; then the MMAs; then what gives the stage back.",
        "One `tcgen05.cp` brings the scales of 128 rows and K = 64 into 4 columns. "
        "One MMA takes K = 64.",
        "Accumulator 0 starts at column 0x000, the scales at 0x100 or, every other "
        "k-tile, at 0x120. The stage is `k_tile % 4`.",
    ),
    wrong=(
        _two_copies,
        _sixteen_mmas,
        _byte_address,
        _plain_arrive,
        _one_set_of_columns,
        _no_wrap,
    ),
    cases=lambda: [(k_tile,) for k_tile in range(K_TILES)],
)
def k_tile_of_the_mma_warp(k_tile: int) -> Issued:
    """Operation, and the TMEM column or the barrier that it writes to."""
    return one_k_tile(k_tile)


def _mma_books() -> dict[str, Any]:
    dispatch = frames.show("6.6.8")
    mmas = K_TILES * dispatch["instructions_per_k_tile"]
    rows, columns = dispatch["tile"]
    return {
        "threads": dispatch["issuing_threads"],
        "scales": frames.show("6.6.7")["scales_per_row"],
        "scale copies": 2 * K_TILES * K_BLOCKS,
        "mmas": mmas,
        "commits": K_TILES + 1,
        "exit": _exit_state(frames.show("6.1")["mainloop"]["phase"]),
        "operations": 2 * mmas * rows * columns * MMA_K,
    }


@exercise(
    "07.4",
    title="The books of the MMA warp",
    frames=("6.6.6", "6.6.8", "6.9", "6.10", "6.11", "6.12"),
    hints=(
        "Multiply what one k-tile has by eight; then add what ends the tile.",
        "The accumulator is handed over like a stage: by one more `tcgen05.commit`.",
        "One MMA is 128 x 128 x 64 multiply-adds, and each of them is two operations.",
    ),
    wrong=(
        _mma_books() | {"threads": 128},
        _mma_books() | {"scales": 1},
        _mma_books() | {"scale copies": 16},
        _mma_books() | {"mmas": 128},
        _mma_books() | {"commits": 8},
        _mma_books() | {"exit": (8, 0, 8)},
        _mma_books() | {"operations": 33_554_432},
    ),
)
def mma_books() -> dict[str, Any]:
    """What one tile of eight k-tiles costs the MMA warp."""
    return _mma_books()
