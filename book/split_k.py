"""split_k: five k-tiles in three splits, and how their sums come together."""

from __future__ import annotations

from drawing import arrow_across, arrow_down, box, figure, svg
from wording import row

from fp4ref.gemm.split_k import SplitK

FILE = "split_k.svg"
DRAWN = SplitK(k_tiles=5, splits=3)

_LEFT, _WIDTH, _GAP = 20, 206, 22


def k_tiles(split: int) -> range:
    """k-tiles of a split."""
    first = DRAWN.k_idx(split)
    return range(first, first + DRAWN.k_tile_count(split))


def sums(split: int) -> str:
    """What is in after a split has added."""
    text = "s0"
    for i in range(1, split + 1):
        text = f"({text}) + s{i}" if i > 1 else f"{text} + s{i}"
    return text


def waits_for(split: int) -> str:
    """Value of the lock that a split waits for."""
    first = DRAWN.k_idx(split)
    return f"waits for lock {first}" if first else "does not wait"


def then(split: int) -> str:
    """What becomes of the sum."""
    if DRAWN.is_final_split(split):
        return "epilogue, D"
    return f"lock becomes {k_tiles(split).stop}"


def picture() -> str:
    """K from left to right; the sums of the splits below it."""
    drawn = []
    for split in range(DRAWN.splits):
        own = k_tiles(split)
        x, width = _LEFT + split * (_WIDTH + _GAP), _WIDTH
        each = width // len(own)
        for i, k_tile in enumerate(own):
            drawn.append(box(x + i * each, 16, each, 34, [f"k-tile {k_tile}"]))
        middle = x + width // 2
        drawn.append(arrow_down(middle, 50, 70))
        lines = [f"split {split}", f"s{split} in its TMEM"]
        drawn.append(box(x, 70, width, 48, lines, "machine"))
        drawn.append(arrow_down(middle, 118, 138))
        lines = [sums(split), waits_for(split), then(split)]
        drawn.append(box(x, 138, width, 68, lines, "result"))
        if split:
            drawn.append(arrow_across(x - _GAP, x, 172))
    return svg(222, alt(), drawn)


def alt() -> str:
    """One sentence for readers who do not see the picture."""
    each = [
        f"split {s} has k-tiles {' and '.join(map(str, k_tiles(s)))}, {waits_for(s)}, "
        f"makes {sums(s)}, then {then(s)}"
        for s in range(DRAWN.splits)
    ]
    return f"Three splits of one output tile: {'; '.join(each)}."


def page() -> str:
    """The picture and its text twin."""
    lines = [figure(FILE, alt()), ""]
    heads = ("split", "k-tiles", "lock", "float32 sum", "then")
    lines += [row(*heads), row(*["---"] * len(heads))]
    for split in range(DRAWN.splits):
        own = " and ".join(map(str, k_tiles(split)))
        lines.append(row(str(split), own, waits_for(split), sums(split), then(split)))
    return "\n".join([*lines, ""])
