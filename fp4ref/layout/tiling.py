"""tiling: cut a layout into tiles, and take one tile out.

All divides hold the same offsets and differ in how the modes are grouped. With
A of shape (M,N) and a tiler (BLK_M,BLK_N):

    logical_divide   ((BLK_M,m),(BLK_N,n))
    zipped_divide    ((BLK_M,BLK_N),(m,n))
    tiled_divide     ((BLK_M,BLK_N),m,n)
    flat_divide      (BLK_M,BLK_N,m,n)
    local_tile       (BLK_M,BLK_N) and the offset of tile (m,n)
"""

from __future__ import annotations

from fp4ref.errors import LayoutError
from fp4ref.layout.algebra import (
    Layout,
    Tiler,
    complement,
    composition,
    make_layout,
    require_layout,
    require_tiler,
)
from fp4ref.layout.int_tuple import whole


def logical_divide(layout: Layout, tiler: Tiler) -> Layout:
    """Split into (what `tiler` covers, the rest); by mode for a tuple of tilers.

    Raises
    ------
    LayoutError
        The tile does not divide the layout.
    """
    require_layout(layout, "layout")
    tiler = require_tiler(tiler, "tiler")
    if isinstance(tiler, tuple):
        modes, untiled = _tiled_modes(layout, tiler)
        return make_layout(*map(logical_divide, modes, tiler), *untiled)
    if layout.size % tiler.size:
        raise LayoutError(
            f"tiler: a tile of {tiler.size} does not divide {layout}, size "
            f"{layout.size}; pad the tensor to whole tiles"
        )
    tile_and_rest = make_layout(tiler, complement(tiler, layout.size))
    if tile_and_rest.size != layout.size:
        raise LayoutError(
            f"tiler {tiler} with its complement covers {tile_and_rest.size} elements, "
            f"not the {layout.size} of {layout}"
        )
    return composition(layout, tile_and_rest)


def zipped_divide(layout: Layout, tiler: Tiler) -> Layout:
    """Group the divide as ``((tile, ...), (rest, ...))``."""
    tile, rest = _tile_and_rest(layout, tiler)
    return make_layout(tile, rest)


def tiled_divide(layout: Layout, tiler: Tiler) -> Layout:
    """Group the divide as ``((tile, ...), rest, ...)``."""
    tile, rest = _tile_and_rest(layout, tiler)
    return make_layout(tile, *rest.modes)


def flat_divide(layout: Layout, tiler: Tiler) -> Layout:
    """Group the divide as ``(tile, ..., rest, ...)``."""
    tile, rest = _tile_and_rest(layout, tiler)
    return make_layout(*tile.modes, *rest.modes)


def local_tile(
    layout: Layout, tiler: Tiler, coord: int | tuple[int | None, ...]
) -> tuple[Layout, int]:
    """Take the tile at `coord`.

    Parameters
    ----------
    coord
        One tile index per mode of the rest. ``None`` keeps that mode: with
        ``(m, None)`` the result is (BLK_M, BLK_K, k), the k-tiles of row block m.

    Returns
    -------
    Layout, int
        The tile, followed by the modes that were kept; and the offset of its first
        element.

    Raises
    ------
    LayoutError
        The tile does not divide the layout, or `coord` is not one of its tiles.
    """
    tile, rest = _tile_and_rest(layout, tiler)
    indices, modes = (
        (coord, rest.modes) if isinstance(coord, tuple) else ((coord,), (rest,))
    )
    if len(indices) != len(modes):
        raise LayoutError(f"coord: {coord!r:.60} does not fit the tiles {rest}")
    offset = 0
    kept: list[Layout] = []
    for index, mode in zip(indices, modes, strict=True):
        if index is None:
            kept.append(mode)
        elif 0 <= (at := whole(index, "coord")) < mode.size:
            offset += mode(at)
        else:
            raise LayoutError(f"coord: {at} is outside 0..{mode.size - 1} of {rest}")
    return make_layout(*tile.modes, *kept), offset


def _tile_and_rest(layout: Layout, tiler: Tiler) -> tuple[Layout, Layout]:
    """Divide, and gather the tile parts and the rest parts of all modes."""
    require_layout(layout, "layout")
    tiler = require_tiler(tiler, "tiler")
    if not isinstance(tiler, tuple):
        tile, rest = logical_divide(layout, tiler).modes
        return tile, rest
    modes, untiled = _tiled_modes(layout, tiler)
    parts = list(map(_tile_and_rest, modes, tiler))
    return (
        make_layout(*(tile for tile, _ in parts)),
        make_layout(*(rest for _, rest in parts), *untiled),
    )


def _tiled_modes(
    layout: Layout, tiler: tuple[Tiler, ...]
) -> tuple[tuple[Layout, ...], tuple[Layout, ...]]:
    """Separate the modes that a tuple of tilers cuts from those it leaves whole."""
    if len(tiler) > layout.rank:
        raise LayoutError(f"tiler: {len(tiler)} modes do not fit {layout}")
    return layout.modes[: len(tiler)], layout.modes[len(tiler) :]
