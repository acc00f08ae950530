"""lesson_17: exercises of k-groups; one answer is read from a run."""

from __future__ import annotations

import numpy as np

from fp4ref.execution.runs import run
from fp4ref.gemm.config import GemmConfig
from fp4ref.gemm.plan import plan
from fp4ref.lessons.exercise import exercise
from fp4ref.tensors.quantize import quantize


@exercise(
    "17.1",
    title="Rounds of ten k-tiles in groups of four",
    frames=("5.4.8",),
    hints=(
        "2,560 elements are ten k-tiles of 256.",
        "Two whole groups of four leave two k-tiles.",
        "A round expects the bytes of the k-tiles that it has.",
    ),
    why=(
        "Ten k-tiles are two groups of four and one of two, and a round expects the "
        "bytes of the k-tiles that it has."
    ),
    # A whole group; the rest dropped; one k-tile; one round for each.
    wrong=((3, 147_456), (2, 147_456), (3, 36_864), (10, 36_864)),
)
def rounds() -> tuple[int, int]:
    """Count as the load warp does."""
    p = plan(GemmConfig())
    starts = range(0, 2_560 // p.tile_k, 4)
    return len(starts), (starts.stop - starts[-1]) * p.k_tile_tx_bytes


@exercise(
    "17.2",
    title="The buffer of a k-tile",
    frames=("5.4.4",),
    hints=(
        "In which round is k-tile 5, and which stage has that round?",
        "Stages follow each other and begin again: round 2 has stage 0.",
        "In its group k-tile 5 is the second one.",
    ),
    why=(
        "K-tile 5 is the second one of group 2, and with two stages group 2 is in "
        "stage 0 again."
    ),
    # k-tile 5 as with groups of one; round 2 as stage 2; the first of its group.
    wrong=(3, 0, 2, 5),
)
def buffer_of_k_tile_5() -> int:
    """Look where TMA puts it."""
    one = quantize(np.ones((1, 1_792), np.float32))
    found = run(one, one, config=GemmConfig.nvfp4(k_group=2))
    assert found.trace is not None
    (load,) = (
        e
        for e in found.trace.select(operation="cp.async.bulk.tensor.3d.load")
        if e.kind == "issue"
        and e.operands["tensor"] == "A"
        and e.operands["coords"][0] == 5 * plan(found.config).tile_k
    )
    p = plan(found.config)
    return int((load.operands["smem"] - p.smem["a"]) // p.a_nbytes)
