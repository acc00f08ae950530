"""pairs: one stage of a CTA pair, and where D lies in its two TMEMs.

The stage is the one of notebook 15; the lanes are those of `fp4ref.hardware.data_path`.
"""

from __future__ import annotations

from typing import NamedTuple

from drawing import WIDTH, arrow_across, arrow_down, box, figure, svg, text
from wording import row

from fp4ref.gemm.config import TILE_K, TILE_M
from fp4ref.gemm.partition import operand_map, scale_map
from fp4ref.hardware.data_path import DATA_PATHS
from fp4ref.hardware.tensor_memory import LANES
from fp4ref.lessons.pair_programs import MARK_N, PLAN, N

STAGE_FILE, LANES_FILE = "pair_stage.svg", "pair_lanes.svg"

_PANEL, _GAP, _LEFT = 300, 60, 20
_NAMES = ("leader (rank 0)", "peer (rank 1)")


class Held(NamedTuple):
    """What the shared memory of one CTA holds of one operand."""

    operand: str
    what: str
    nbytes: int


def stage(rank: int) -> list[Held]:
    """Return what lands in the shared memory of a CTA of the pair."""
    half = N // 2
    a, b = (
        operand_map(0, N, TILE_K, 1, (TILE_K, rows)).box_nbytes
        for rows in (TILE_M, half)
    )
    sfa, sfb = (
        scale_map(0, N, TILE_K, 1, PLAN, rows).box_nbytes for rows in (TILE_M, N)
    )
    own = _range(rank * TILE_M, TILE_M)
    return [
        Held("A", f"rows {own}", a),
        Held("B", f"rows {_range(rank * half, half)}", b),
        Held("SFA", f"of rows {own} of A", sfa),
        Held("SFB", f"of rows {_range(0, N)} of B", sfb),
    ]


def stage_nbytes() -> int:
    """Bytes that the leader's full barrier counts for a stage."""
    return sum(held.nbytes for rank in (0, 1) for held in stage(rank))


class Block(NamedTuple):
    """A part of D in the TMEM of one CTA: first and number of each."""

    lanes: tuple[int, int]
    rows: tuple[int, int]
    columns: tuple[int, int]


def blocks(m: int, rank: int) -> list[Block]:
    """Return where D of MARK_N columns lies in one TMEM."""
    path = DATA_PATHS[m, 2]
    rows, columns = (rank * path.rows, path.rows), path.columns(MARK_N)
    return [
        Block((lane, path.lanes), rows, (part * columns, columns))
        for part, lane in enumerate(path.first_lanes)
    ]


def _range(first: int, count: int) -> str:
    return f"{first} to {first + count - 1}"


def _panel(rank: int) -> int:
    return _LEFT + rank * (_PANEL + _GAP)


def stage_picture() -> str:
    """Shared memory above, the MMA across both, tensor memory below."""
    parts, top, high = [], 34, 44
    for rank in (0, 1):
        x, y = _panel(rank), top
        parts.append(text(x + _PANEL / 2, 22, f"SM of the {_NAMES[rank]}", bold=True))
        for held in stage(rank):
            lines = [held.operand, f"{held.what}, {held.nbytes:,} bytes"]
            parts.append(box(x, y, _PANEL, high, lines))
            y += high + 6
    bottom = top + 4 * (high + 6)
    full = [f"full: {stage_nbytes():,} bytes", "counts what lands in both"]
    parts.append(box(_panel(0), bottom + 8, _PANEL, high, full, "machine"))
    start, middle = _panel(1), bottom + 8 + high // 2
    parts.append(text(start + _PANEL / 2, middle - 4, "its loads name the barrier"))
    parts.append(text(start + _PANEL / 2, middle + 14, "of the leader"))
    parts.append(arrow_across(start, _panel(0) + _PANEL, middle))
    mma, width = bottom + 90, 2 * _PANEL + _GAP
    words = ["tcgen05.mma.cta_group::2", "one thread of the leader issues it"]
    parts.append(box(_LEFT, mma, width, high, words, "machine"))
    for rank in (0, 1):
        centre, d = _panel(rank) + _PANEL // 2, mma + high + 28
        parts.append(arrow_down(centre, mma - 28, mma))
        parts.append(arrow_down(centre, mma + high, d))
        rows = _range(rank * TILE_M, TILE_M)
        lines = [f"D, rows {rows}", f"in its TMEM, lanes {_range(0, LANES)}"]
        parts.append(box(_panel(rank), d, _PANEL, high, lines, "result"))
    return svg(mma + 2 * high + 40, stage_alt(), parts)


def stage_alt() -> str:
    """One sentence for readers who do not see the picture."""
    each = [
        f"the {name} holds "
        + ", ".join(f"{held.operand} {held.what}" for held in stage(rank))
        for rank, name in enumerate(_NAMES)
    ]
    return f"One stage of a pair: {'; '.join(each)}; one barrier counts all bytes."


def lanes_picture() -> str:
    """Each TMEM as its lanes, for both values of M."""
    parts, high, y = [], 128, 34
    for m in (256, 128):
        columns = DATA_PATHS[m, 2].columns(MARK_N)
        parts.append(text(WIDTH / 2, y - 10, _heading(m, columns), bold=True))
        for rank in (0, 1):
            for block in blocks(m, rank):
                first, count = block.lanes
                at = y + first * high // LANES
                lines = [
                    f"lanes {_range(*block.lanes)}",
                    f"rows {_range(*block.rows)} of D,",
                    f"columns {_range(*block.columns)} of D",
                ]
                size = count * high // LANES
                parts.append(box(_panel(rank), at, _PANEL, size, lines, "result"))
            parts.append(text(_panel(rank) + _PANEL / 2, y + high + 18, _NAMES[rank]))
        y += high + 62
    return svg(y - 30, lanes_alt(), parts)


def _heading(m: int, columns: int) -> str:
    return f"M = {m}, N = {MARK_N}: columns {_range(0, columns)} of each TMEM"


def lanes_alt() -> str:
    """One sentence for readers who do not see the picture."""
    return (
        "Lanes of D in the TMEM of both CTAs: with M = 256 one row in each lane; with "
        "M = 128 the second half of N is in lanes 64 to 127."
    )


def page() -> str:
    """Both pictures, each with its table."""
    lines = [figure(STAGE_FILE, stage_alt()), ""]
    lines += [row("in shared memory", *_NAMES), row("---", "---", "---")]
    for held, other in zip(stage(0), stage(1), strict=True):
        lines.append(row(held.operand, *(f"{e.what}" for e in (held, other))))
    total = f"counts {stage_nbytes():,} bytes"
    lines += [row("full barrier", total, "counts nothing"), ""]
    lines += [figure(LANES_FILE, lanes_alt()), ""]
    heads = ("M", "CTA", "lanes", "rows of D", "columns of D")
    lines += [row(*heads), row(*["---"] * len(heads))]
    for m in (256, 128):
        for rank, name in enumerate(_NAMES):
            for block in blocks(m, rank):
                lines.append(row(str(m), name, *(_range(*each) for each in block)))
    return "\n".join([*lines, ""])


def pictures() -> dict[str, str]:
    """Text of both files by their path from ``book/``."""
    return {
        f"_generated/{STAGE_FILE}": stage_picture(),
        f"_generated/{LANES_FILE}": lanes_picture(),
    }
