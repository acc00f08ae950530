"""lesson_18: exercises of split-K."""

from __future__ import annotations

from fp4ref.gemm.split_k import SplitK
from fp4ref.lessons.exercise import exercise

_SPLIT_K = SplitK(k_tiles=11, splits=4)


@exercise(
    "18.1",
    title="Eleven k-tiles in four splits",
    frames=("2.3",),
    hints=(
        "The k-tiles of a split follow each other, and no two counts differ by two.",
        "11 = 4 * 2 + 3: the first three splits have one more.",
    ),
    # The rest to the last split; too many; evenly rounded up; the rest first.
    wrong=([2, 2, 2, 5], [3, 3, 3, 3], [2, 3, 3, 3], [5, 2, 2, 2]),
)
def counts() -> list[int]:
    """Divide."""
    return [_SPLIT_K.k_tile_count(split) for split in range(_SPLIT_K.splits)]


@exercise(
    "18.2",
    title="When a split begins to add",
    frames=("7.5",),
    hints=(
        "The lock counts k-tiles, not splits.",
        "A split waits until all k-tiles before its first one are in.",
        "So it waits for the number of its own first k-tile.",
    ),
    why=(
        "The lock counts the k-tiles that have been added, and a split waits for all "
        "of those before its own."
    ),
    # Splits that are in; those with its own; the last k-tiles.
    wrong=([1, 2, 3], [6, 9, 11], [2, 5, 8], [0, 3, 6]),
)
def lock_values() -> list[int]:
    """First k-tiles."""
    return [_SPLIT_K.k_idx(split) for split in range(1, _SPLIT_K.splits)]
