"""layout_scenes: where scales and swizzled chunks lie."""

from __future__ import annotations

from fp4ref.arguments import require_choice, require_integer
from fp4ref.errors import InputError
from fp4ref.hardware.mma_operands import SF_ROWS
from fp4ref.hardware.tcgen05 import MMA_K
from fp4ref.layout import (
    SwizzleMode,
    padded_shape,
    sf_nbytes,
    sf_offset,
    swizzled_offsets,
    tmem_scale_position,
)
from fp4ref.layout.scale_factors import ATOM_COLS, ATOM_ROWS
from fp4ref.tensors.block_format import NVFP4_VEC_SIZE
from fp4ref.viz.packet import Header
from fp4ref.viz.player import Player
from fp4ref.viz.strings import say
from fp4ref.viz.text import table_text

PICTURE = {"rows": ATOM_ROWS, "k": 4 * MMA_K}
"""What the picture of one stage shows: four atoms, one for the K of each MMA."""
CHUNK_NBYTES = SwizzleMode.NONE.span


def scale_places(
    rows: int, k: int, sf_vec_size: int, *, rows_in_all: int, k_in_all: int
) -> Header:
    """Say where each scale of a tile lies: global, shared and tensor memory.

    Parameters
    ----------
    rows, k
        Of the tile.
    sf_vec_size
        Elements of K with one scale.
    rows_in_all, k_in_all
        Of the whole matrix. What a tile has beyond them lies in no global memory.
    """
    groups, in_all = k // sf_vec_size, -(-k_in_all // sf_vec_size)
    places: Header = {name: [] for name in ("gmem", "smem", "lane", "column", "byte")}
    columns = rows // SF_ROWS
    _, padded = padded_shape(rows, in_all)
    for row in range(rows):
        for group in range(groups):
            block, s = divmod(group, ATOM_COLS)
            where = tmem_scale_position(row, s)
            offset = sf_offset(row, group, in_all) if group < padded else None
            places["gmem"].append(offset)
            places["smem"].append(sf_offset(row, group, groups))
            places["lane"].append(where.lanes[0])
            places["column"].append(where.column + block * columns)
            places["byte"].append(where.byte)
    return places | {
        "rows": rows,
        "groups": groups,
        "vec": sf_vec_size,
        "rows_in_all": min(rows, rows_in_all),
        "groups_in_all": in_all,
        "columns": columns * groups // ATOM_COLS,
        "nbytes": sf_nbytes(rows, groups),
    }


def scale_journey(rows: int = 128, k: int = 256) -> Player:
    """Return the scale journey alone: one scale byte in four places.

    Raises
    ------
    InputError
        A tile has 128 rows of scales and K is 256, as one mainloop stage holds.
    """
    for name, value in (("rows", rows), ("k", k)):
        if require_integer(value, name) != PICTURE[name]:
            raise InputError(f"{name}: {value}; a stage holds {PICTURE[name]}")
    places = scale_places(rows, k, NVFP4_VEC_SIZE, rows_in_all=rows, k_in_all=k)
    header: Header = {"title": say("title.scales"), "scales": {"SFA": places}}

    def text(_: int, __: str) -> str:
        columns = say("text.scales.columns").split("|")
        names = ("gmem", "smem", "lane", "column", "byte")
        cells = [
            [
                row,
                group,
                *(places[name][row * places["groups"] + group] for name in names),
            ]
            for row in (0, 1, 31, 32, 127)
            for group in (0, 1, 4, 15)
        ]
        return table_text(say("text.scales", rows=rows, k=k), columns, cells)

    return Player(header, view="scales", text=text)


def swizzle(mode: str = "128B") -> Player:
    """Return the swizzle grid: where each 16-byte chunk of 8 rows goes.

    Raises
    ------
    InputError
        `mode` is not ``"none"``, ``"32B"``, ``"64B"`` or ``"128B"``.
    """
    named = {
        "none": SwizzleMode.NONE,
        "32B": SwizzleMode.B32,
        "64B": SwizzleMode.B64,
        "128B": SwizzleMode.B128,
    }
    require_choice(mode, "mode", tuple(named))
    modes = {}
    for name, found in named.items():
        span = found.span if found is not SwizzleMode.NONE else 128
        address = swizzled_offsets(found, 8, span)[:, ::CHUNK_NBYTES].tolist()
        modes[name] = {"span": span, "address": address}
    header: Header = {
        "title": say("title.swizzle"),
        "swizzle": {"mode": mode, "modes": modes},
    }

    def text(_: int, __: str) -> str:
        chosen = modes[mode]
        chunks = range(len(chosen["address"][0]))
        columns = [say("col.row"), *(say("swizzle.chunk", c=c) for c in chunks)]
        rows = [[i, *map(hex, row)] for i, row in enumerate(chosen["address"])]
        return table_text(say("text.swizzle", mode=mode), columns, rows)

    return Player(header, view="swizzle", text=text)
