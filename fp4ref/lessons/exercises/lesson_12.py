"""lesson_12: exercises of the compiled kernel.

All of them read the packaged PTX and SASS, which are the same with and without NVRTC.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from typing import Any
from unittest.mock import patch

import numpy as np

import fp4ref
from fp4ref.cuda_kernel import KernelCode, on_sm
from fp4ref.cuda_kernel.build import packaged
from fp4ref.cuda_kernel.sass import Listing, mandatory, opcode
from fp4ref.gemm.config import TILE_K, TILE_M
from fp4ref.gemm.plan import plan
from fp4ref.lessons.exercise import exercise


def k_tile_loop(name: str = "f32") -> list[str]:
    """Return what the MMA warp executes in one round of its k-tile loop.

    Parameters
    ----------
    name
        A key of `fp4ref.cuda_kernel.packaged_configs`.
    """
    return list(Listing(packaged(f"{name}.sass")).loop_around("UTCOMMA"))


@cache
def operands() -> tuple[fp4ref.BlockScaled, fp4ref.BlockScaled]:
    """Return A and B of one tile with two k-tiles."""
    rng = np.random.default_rng(12)
    a, b = (
        fp4ref.quantize(rng.standard_normal((TILE_M, 2 * TILE_K), np.float32))
        for _ in range(2)
    )
    return a, b


def first_difference(ptx: str) -> dict[str, Any]:
    """Run changed PTX beside the emulator, and say what `fp4ref.compare` names."""
    code = KernelCode(ptx, "changed")
    with patch.object(on_sm, "kernel_code", lambda config: code):
        theirs = fp4ref.run(*operands(), backend="ptx", sms=1)
    found = fp4ref.compare(fp4ref.run(*operands(), sms=1), theirs).first_difference
    assert found is not None
    row = re.match(r"row (\d+)", found.coordinates)
    assert row is not None
    return {
        "tensor": found.key.tensor,
        "K-block": found.key.block,
        "row": int(row[1]),
    }


@exercise(
    "12.1",
    title="Three words of SASS",
    frames=("6.6.4", "6.6.9", "6.7", "6.10"),
    hints=(
        "Each of the three stands for one PTX instruction, one for one: count.",
        "`ptx.count('tcgen05.mma.')` and `sass.count('UTCOMMA')` are a pair.",
        "There are four of `UTCBAR`, and far more plain arrivals.",
    ),
    why=(
        "A k-tile takes eight copies of scales, four MMAs and one commit: the counts "
        "tell the words apart."
    ),
    wrong=(
        {
            "UTCCP": "tcgen05.cp",
            "UTCOMMA": "tcgen05.mma",
            "UTCBAR": "mbarrier.arrive",
        },
        {"UTCCP": "tcgen05.mma", "UTCOMMA": "tcgen05.cp", "UTCBAR": "tcgen05.commit"},
        {"UTCCP": "tcgen05.cp", "UTCOMMA": "mma.sync", "UTCBAR": "tcgen05.commit"},
    ),
)
def words_of_sass() -> dict[str, str]:
    """Pair the words with the PTX instruction that occurs as often."""
    ptx = Counter(re.findall(r"(tcgen05\.\w+)\.cta_group", packaged("f32.ptx")))
    sass = Counter(opcode(each) for each in Listing(packaged("f32.sass")).instructions)
    found = {}
    for word in mandatory(plan()):
        (found[word],) = (name for name, n in ptx.items() if n == sass[word])
    return found


@exercise(
    "12.2",
    title="What one token changes",
    hints=(
        "TMA fills the stage by the tensor map; it never sees this descriptor.",
        "The stride says how far apart two groups of 8 rows are.",
        "The first group has no stride to go wrong by.",
    ),
    why=(
        "The stride leads to the second group of 8 rows, and the first MMA already "
        "reads it."
    ),
    wrong=(
        {"tensor": "A", "K-block": -1, "row": 8},
        {"tensor": "accumulator", "K-block": 0, "row": 0},
        {"tensor": "accumulator", "K-block": 0, "row": 1},
        {"tensor": "accumulator", "K-block": 1, "row": 8},
    ),
)
def half_the_stride() -> dict[str, Any]:
    """Halve the stride of the first descriptor of A and see."""
    return first_difference(
        packaged("f32.ptx").replace("64, 64, 0, 64", "32, 64, 0, 64", 1)
    )


def _census() -> dict[str, float]:
    loop = Counter(opcode(each) for each in k_tile_loop())
    k_tiles = loop["UTCBAR"]
    return {word: loop[word] // k_tiles for word in mandatory(plan())} | {
        "all": loop.total() / k_tiles
    }


@exercise(
    "12.3",
    title="The census of a k-tile",
    frames=("6.6.4", "6.6.5", "6.11"),
    hints=(
        "The loop is unrolled: first find out how many k-tiles one round has.",
        "Every k-tile ends with one commit.",
        "Divide each count by the number of `UTCBAR`.",
    ),
    why=(
        "One `UTCBAR` ends each k-tile, so each count divided by theirs is that of "
        "one k-tile."
    ),
    wrong=(
        _census() | {"UTCCP": 2},
        _census() | {"UTCOMMA": 16},
        # The loop rolled; and a round taken for a k-tile.
        _census() | {"all": 59},
        {word: 2 * n for word, n in _census().items()},
    ),
    unit="instructions",
)
def census() -> dict[str, float]:
    """SASS instructions of one k-tile of the MMA warp, by their first word."""
    return _census()
