"""store: D and SFD at the wrong place."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fp4ref.evidence.triage.case import Case
from fp4ref.evidence.triage.mistake import Change, Mistake, setting
from fp4ref.evidence.triage.mistakes.scales import byte_of, inside, padded
from fp4ref.evidence.triage.reading import I64, Map, Reading, Region
from fp4ref.layout.scale_layouts import ScaleLayout

_SQUARES: Final = (128, 64, 32)
_PITCHES: Final = (4, 8, 16, 32, 64, 128, 256)
_TILES: Final = (128, 256, 64)


def _stored(each: Map) -> Change:
    return lambda r: replace(r, d_maps=(*r.d_maps, each))


def _transposed(case: Case) -> Iterator[tuple[str, Change]]:
    m, n = case.m, case.n
    if min(m, n) > 1:

        def whole(row: I64, column: I64) -> tuple[I64, I64]:
            flat = column * m + row
            return flat // n, flat % n

        yield "the whole matrix", _stored(whole)
    for size in _SQUARES:
        if size < max(m, n):

            def in_square(row: I64, column: I64, size: int = size) -> tuple[I64, I64]:
                at = row // size * size + column % size
                return inside(at, column // size * size + row % size, (m, n))

            yield f"each square of {size}", _stored(in_square)
    tile = 128
    if m == n > tile:

        def tiles(row: I64, column: I64) -> tuple[I64, I64]:
            at = column // tile * tile + row % tile
            return inside(at, row // tile * tile + column % tile, (m, n))

        yield "coordinates of the tiles", _stored(tiles)


def _boxes(case: Case) -> Iterator[tuple[str, Change]]:
    for columns in (32, 16, 64):
        if case.n > columns:

            def box(row: I64, column: I64, columns: int = columns) -> tuple[I64, I64]:
                return inside(row, column ^ columns, (case.m, case.n))

            yield f"neighbours of {columns} columns", _stored(box)


def _ragged(case: Case) -> Iterator[tuple[str, Change]]:
    m, n = case.m, case.n
    for multiple in _PITCHES:
        if pad := -n % multiple:

            def pitched(row: I64, column: I64, pitch: int = n + pad) -> tuple[I64, I64]:
                flat = row * pitch + column
                return inside(flat // n, flat % n, (m, n))

            yield f"rows of {n + pad} elements, not {n}", _stored(pitched)
    for tile in _TILES:
        edges = m // tile * tile, n // tile * tile
        for axis, (end, edge) in enumerate(zip((m, n), edges, strict=True)):
            if edge == end or edge == 0:
                continue
            name = ("rows", "columns")[axis]
            yield (
                f"{name} {edge} to {end - 1} hold something else",
                setting(unwritten=_beyond(axis, edge)),
            )
            yield (
                f"tile of {tile} {name} stored so that it ends with D",
                _stored(_pushed(axis, edge, end, tile)),
            )


def _beyond(axis: int, edge: int) -> Region:
    def region(row: I64, column: I64) -> NDArray[np.bool_]:
        return np.broadcast_arrays(row, column)[axis] >= edge

    return region


def _pushed(axis: int, edge: int, end: int, tile: int) -> Map:
    def pushed(row: I64, column: I64) -> tuple[I64, I64]:
        at = [row, column]
        at[axis] = np.where(at[axis] >= edge, at[axis] - edge + end - tile, at[axis])
        return at[0], at[1]

    return pushed


def _scales_of_d(case: Case) -> Iterator[tuple[str, Change]]:
    """A scale is stored by one layout, and the dump was read by 128x4."""
    if case.sfd is None:
        return
    shape = case.sfd.shape[0], case.sfd.shape[1]
    seen = byte_of(shape, "128x4")
    columns = seen.shape[1]
    places = np.argsort(seen, axis=None)

    def stored_by(written: I64) -> Map:
        def mapped(row: I64, column: I64) -> tuple[I64, I64]:
            at = written[row, column]
            place = places[np.minimum(at, len(places) - 1)]
            found = inside(place // columns, place % columns, shape)
            return np.where(at < len(places), found[0], -1), found[1]

        return mapped

    names: tuple[tuple[str, ScaleLayout], ...] = (
        ("not swizzled", "row_major"),
        ("in 8x4", "8x4"),
    )
    for words, layout in names:
        yield words, _stored_scales(stored_by(byte_of(shape, layout)))
    whole = padded(shape, "128x4")
    row_major = np.arange(whole[0] * whole[1]).reshape(whole)
    yield "not swizzled, padded", _stored_scales(stored_by(row_major))
    twice = seen.ravel()[seen]
    yield "swizzled twice", _stored_scales(stored_by(twice))
    row = np.arange(whole[0])
    for words, of in (
        ("4 x 32 for 32 x 4", row % 128 % 4 * 32 + row % 128 // 4),
        ("32 x 4 twice", row % 32 * 4 + row % 128 // 32),
        ("quarters reversed", row % 128 ^ 96),
    ):
        moved = seen[row // 128 * 128 + of]
        yield words, _stored_scales(stored_by(moved))


def _stored_scales(each: Map) -> Change:
    def change(reading: Reading) -> Reading:
        return replace(reading, sfd_maps=(*reading.sfd_maps, each))

    return change


STORE = (
    Mistake(
        "D transposed",
        "Elements of D are stored at exchanged rows and columns.",
        "Column-major D where row-major is read, m and n exchanged in a tile's "
        "coordinates, or TMEM lanes taken for columns.",
        "the strides of D, the coordinates of the store's tensor copy, and who holds "
        "what after tcgen05.ld",
        _transposed,
    ),
    Mistake(
        "boxes of D exchanged",
        "Neighbouring boxes of columns of D have changed places.",
        "The subtile's number and the column of its store do not go together.",
        "the loop over subtiles in the epilogue, and the coordinate of its store",
        _boxes,
    ),
    Mistake(
        "ragged edge",
        "The last, partial tile along M or N is not where it should be, or rows have "
        "another pitch than the reader thinks.",
        "A predicate at the edge is missing or too strict, or a padded pitch was read "
        "without its padding.",
        "the predicates of the last tile, the box and global sizes of D's tensor map, "
        "and ldd",
        _ragged,
    ),
    Mistake(
        "scales of D in another layout",
        "The scales of D are stored by another layout, or in other rows of an atom.",
        "The epilogue wrote row-major, or 128x4 offsets were applied twice.",
        "the address of SFD in the epilogue: row % 32 * 16 + row % 128 // 32 * 4",
        _scales_of_d,
    ),
)
