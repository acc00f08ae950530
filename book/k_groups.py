"""k_groups: seven k-tiles in groups of two: rounds, stages, buffers and bytes."""

from __future__ import annotations

from typing import NamedTuple

from drawing import WIDTH, arrow_down, box, figure, svg, text
from wording import row

from fp4ref.gemm.config import GemmConfig
from fp4ref.gemm.plan import plan

FILE = "k_groups.svg"
CONFIG = GemmConfig.nvfp4(k_group=2)
K_TILES = 7
SMALL = {"cta_group": 2, "tile_m": 256, "cluster_m": 2, "tile_n": 64}
"""Tiles of the table of costs: of a pair, so that groups of four fit."""

_LEFT, _COLUMN, _BOX = 14, 168, 160


class Round(NamedTuple):
    """One turn of the load warp.

    Attributes
    ----------
    k_tiles
        Those that it loads.
    buffers
        Of A, one for each of them; and those of the stage that stay as they are.
    tx_bytes
        That its one arrival expects.
    """

    stage: int
    k_tiles: range
    buffers: range
    unused: range
    tx_bytes: int


def rounds() -> list[Round]:
    """Return the rounds of one tile."""
    p = plan(CONFIG)
    found = []
    for number, first in enumerate(range(0, K_TILES, p.k_group)):
        k_tiles = range(first, min(first + p.k_group, K_TILES))
        stage = number % p.mainloop_stages
        start, end = stage * p.k_group, (stage + 1) * p.k_group
        used = range(start, start + len(k_tiles))
        nbytes = len(k_tiles) * p.k_tile_tx_bytes
        found.append(Round(stage, k_tiles, used, range(used.stop, end), nbytes))
    return found


def picture() -> str:
    """A column for each round: barrier, then the buffers of its stage."""
    drawn = []
    for number, each in enumerate(rounds()):
        x = _LEFT + number * _COLUMN
        middle = x + _BOX // 2
        drawn.append(text(middle, 24, f"round {number}", bold=True))
        lines = [f"stage {each.stage}: full", f"{each.tx_bytes:,} bytes"]
        drawn.append(box(x, 36, _BOX, 48, lines, "machine"))
        drawn.append(arrow_down(middle, 84, 104))
        y = 104
        for k_tile, buffer in zip(each.k_tiles, each.buffers, strict=True):
            lines = [f"k-tile {k_tile}", f"buffer {buffer}"]
            drawn.append(box(x, y, _BOX, 44, lines, "result"))
            y += 50
        for buffer in each.unused:
            drawn.append(box(x, y, _BOX, 44, ["no k-tile", f"buffer {buffer}"]))
            y += 50
    foot = "one arrival and one wait for each round"
    drawn.append(text(WIDTH / 2, 226, foot))
    return svg(242, alt(), drawn)


def alt() -> str:
    """One sentence for readers who do not see the picture."""
    each = [
        f"round {i}: stage {r.stage}, k-tile {_listed(r.k_tiles)}, {r.tx_bytes:,} bytes"
        for i, r in enumerate(rounds())
    ]
    return f"{K_TILES} k-tiles in groups of {plan(CONFIG).k_group}: {'; '.join(each)}."


def page() -> str:
    """The picture, its text twin, and what the group costs."""
    lines = [figure(FILE, alt()), ""]
    heads = ("round", "stage", "k-tiles", "buffers of A", "bytes that are expected")
    lines += [row(*heads), row(*["---"] * 4, "---:")]
    for i, r in enumerate(rounds()):
        cells = (str(r.stage), _listed(r.k_tiles), _listed(r.buffers))
        lines.append(row(str(i), *cells, f"{r.tx_bytes:,}"))
    lines += [
        "",
        "What a group costs, for pairs with tiles of 256 x 64:",
        "",
    ]
    lines += [row("k_group", "bytes of a stage", "stages", "k-tiles in flight")]
    lines += [row(*["---:"] * 4)]
    for size in (1, 2, 4):
        p = plan(GemmConfig.nvfp4(k_group=size, **SMALL))
        flight = p.mainloop_stages * size
        cells = (f"{p.stage_nbytes:,}", str(p.mainloop_stages), str(flight))
        lines.append(row(str(size), *cells))
    return "\n".join([*lines, ""])


def _listed(numbers: range) -> str:
    return " and ".join(map(str, numbers))
