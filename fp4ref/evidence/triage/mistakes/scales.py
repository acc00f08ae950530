"""scales: block scales in another layout, row or column than the MMA reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

import numpy as np

from fp4ref.evidence.triage.case import Case
from fp4ref.evidence.triage.mistake import Change, Mistake
from fp4ref.evidence.triage.mistakes import sides
from fp4ref.evidence.triage.predict import split_starts
from fp4ref.evidence.triage.reading import I64, Map, Reading
from fp4ref.layout import padded_shape
from fp4ref.layout.scale_factors import ATOM_COLS, ATOM_ROWS
from fp4ref.layout.scale_layouts import ATOMS, ScaleLayout, scale_offsets

Shape = tuple[int, int]
_SPLITS: Final = (2, 3, 4, 8)


def inside(row: I64, column: I64, shape: Shape) -> tuple[I64, I64]:
    """Return places, and -1 for rows where the padding is."""
    there = (row < shape[0]) & (column < shape[1])
    return np.where(there, row, -1), column


def padded(shape: Shape, layout: ScaleLayout) -> Shape:
    """Return the shape with the padding of a layout."""
    rows, cols = ATOMS[layout]
    return -(-shape[0] // rows) * rows, -(-shape[1] // cols) * cols


def byte_of(shape: Shape, layout: ScaleLayout) -> I64:
    """Return the byte of each scale, padding included."""
    return scale_offsets(*padded(shape, layout), layout)


def read_as(shape: Shape, read: ScaleLayout, written: I64) -> Map:
    """Return the map of a kernel that reads in a layout what lies in another.

    Parameters
    ----------
    written : (rows, columns)
        The byte where each scale was written.
    """
    places = np.full(int(written.max()) + 1, -1, np.int64)
    places[written.ravel()] = np.arange(written.size)
    bytes_read = byte_of(shape, read)
    columns = written.shape[1]

    def mapped(row: I64, column: I64) -> tuple[I64, I64]:
        at = bytes_read[row, column]
        place = np.where(at < len(places), places[np.minimum(at, len(places) - 1)], -1)
        found = inside(place // columns, place % columns, shape)
        return np.where(place < 0, -1, found[0]), found[1]

    return mapped


def twice(shape: Shape) -> Map:
    """Return the map of scales that went through the 128x4 layout twice."""
    once = byte_of(shape, "128x4")
    places = np.argsort(once, axis=None)
    columns = once.shape[1]

    def mapped(row: I64, column: I64) -> tuple[I64, I64]:
        place = places[row * columns + column]
        return inside(place // columns, place % columns, shape)

    return mapped


def not_at_all(shape: Shape) -> Map:
    """Return the map of row-major scales that are read in the 128x4 layout."""
    return read_as(shape, "128x4", byte_of(shape, "row_major"))


def not_at_all_padded(shape: Shape) -> Map:
    """Return the same for a matrix whose rows and columns were padded first."""
    written = byte_of(padded_shape(*shape), "row_major")
    return read_as(shape, "128x4", written)


def small_m(shape: Shape) -> Map:
    """Return the map of scales in the layout 8x4, read in 128x4."""
    return read_as(shape, "128x4", byte_of(shape, "8x4"))


def as_small_m(shape: Shape) -> Map:
    """Return the map of scales in the layout 128x4, read in 8x4."""
    return read_as(shape, "8x4", byte_of(shape, "128x4"))


def column_major(shape: Shape) -> Map:
    """Return the map of scales with the rows fastest, read in 128x4."""
    rows, cols = shape
    written = np.arange(rows)[:, None] + np.arange(cols)[None] * rows
    return read_as(shape, "128x4", written)


def _in_layouts(
    *made: tuple[str, Callable[[Shape], Map]],
) -> Callable[[Case], Iterator[tuple[str, Change]]]:
    """Return the variants of layouts, for SFA, SFB and both."""

    def found(case: Case) -> Iterator[tuple[str, Change]]:
        shapes = [(q.scales.shape[0], q.scales.shape[1]) for q in (case.a, case.b)]
        for words, make in made:
            yield from sides.of_scales(words, *(make(shape) for shape in shapes))

    return found


def _in_atom(shape: Shape, of: Callable[[I64], I64]) -> Map:
    def mapped(row: I64, column: I64) -> tuple[I64, I64]:
        return inside(row // ATOM_ROWS * ATOM_ROWS + of(row % ATOM_ROWS), column, shape)

    return mapped


def _halved(shape: Shape) -> Map:
    def mapped(row: I64, column: I64) -> tuple[I64, I64]:
        return inside(
            row // ATOM_ROWS // 2 * ATOM_ROWS + row % ATOM_ROWS, column, shape
        )

    return mapped


def _row_maps(case: Case) -> Iterator[tuple[str, Change]]:
    shapes = [(q.scales.shape[0], q.scales.shape[1]) for q in (case.a, case.b)]
    for words, of in (
        ("4 x 32 for 32 x 4", lambda row: row % 4 * 32 + row // 4),
        ("32 x 4 twice", lambda row: row % 32 * 4 + row // 32),
        ("quarters reversed", lambda row: row ^ 96),
    ):
        maps = [_in_atom(shape, of) for shape in shapes]
        yield from sides.of_scales(words, *maps)
    if max(case.m, case.n) > ATOM_ROWS:
        maps = [_halved(shape) for shape in shapes]
        yield from sides.of_scales("block of rows halved", *maps)


def _columns(case: Case) -> Iterator[tuple[str, Change]]:
    per_tile = case.k_tile // case.a.vec_size
    shape = case.a.scales.shape
    for words, of in (
        ("byte 0 for all four", lambda s: s // ATOM_COLS * ATOM_COLS),
        ("bytes reversed", lambda s: s ^ 3),
        ("byte 1 for byte 0, and on", lambda s: s // 4 * 4 + (s + 1) % 4),
        ("halves exchanged", lambda s: s ^ 2),
        (
            "first K block's for the k-tile",
            lambda s: s // per_tile * per_tile + s % ATOM_COLS,
        ),
        ("next block's", lambda s: s + 1),
    ):

        def mapped(
            row: I64, column: I64, of: Callable[[I64], I64] = of
        ) -> tuple[I64, I64]:
            column = of(column)
            return np.where(column < shape[1], row, -1), column

        yield from sides.of_scales(words, mapped, mapped)


def _split_bases(case: Case) -> Iterator[tuple[str, Change]]:
    asked = case.config.tiles.splits
    for splits in dict.fromkeys((asked, *_SPLITS)) if asked > 1 else _SPLITS:
        if not 1 < splits <= case.k_tiles:
            continue
        vec = case.a.vec_size
        starts = np.array(split_starts(case.k, case.k_tile, splits)) // vec

        def mapped(row: I64, column: I64, starts: I64 = starts) -> tuple[I64, I64]:
            slice_of = np.searchsorted(starts, column, side="right") - 1
            return row, column - starts[slice_of]

        for words, change in sides.of_scales(f"{splits} slices", mapped, mapped):
            yield words, _split(change, splits)


def _split(change: Change, splits: int) -> Change:
    def both(reading: Reading) -> Reading:
        return replace(change(reading), splits=splits)

    return both


SCALES = (
    Mistake(
        "split-K scale base",
        "Every slice of K starts at the first scale.",
        "The copies of A and B add the slice's first k-tile, those of the scales do "
        "not: a scale column is k / 16, counted from the start of K.",
        "the coordinate along K of SFA's and SFB's tensor copy",
        _split_bases,
    ),
    Mistake(
        "SF byte or id",
        "An MMA takes the scales of other blocks of 16 than it multiplies.",
        "The TMEM column of the scales is not advanced with the K block, or the byte "
        "is chosen wrongly: a_sf_id and b_sf_id of the instruction descriptor; 4X "
        "takes all four bytes, with id 0.",
        "scale-A and scale-B addresses of tcgen05.mma [PTX: tcgen05 scale factor "
        "layouts], and the order of the four bytes in the atom",
        _columns,
    ),
    Mistake(
        "SF row map",
        "The rows inside an atom of 128 are taken in another order.",
        "Row r is at byte r % 32 * 16 + r // 32 * 4 of an atom; shape (32, 4) was "
        "written as (4, 32), or its strides exchanged. Or the block of 128 is wrong.",
        "the atom's layout ((32, 4), 4) : ((16, 4), 1) [CUTLASS: "
        "Sm1xxBlockScaledConfig::SfAtom], and tcgen05.cp.32x128b.warpx4",
        _row_maps,
    ),
    Mistake(
        "scales in another layout",
        "The scales lie in a layout that is not the MMA's 128x4.",
        "The layout for small M (8x4), or rows fastest, was passed; the sizes can "
        "agree, so nothing complains.",
        "who wrote the scales; LaidOutScales(...).convert('128x4')",
        _in_layouts(
            ("8x4", small_m),
            ("128x4, read as 8x4", as_small_m),
            ("column-major", column_major),
        ),
    ),
    Mistake(
        "scales not swizzled",
        "Row-major scales are read as if they were in 128x4 atoms.",
        "The quantiser's scales went to the kernel without the swizzle.",
        "the call that should swizzle: layout.swizzle_scales, to_blocked",
        _in_layouts(("", not_at_all), ("padded", not_at_all_padded)),
    ),
    Mistake(
        "scales swizzled twice",
        "Scales that were in 128x4 atoms were swizzled again.",
        "A loader, or the library below it, swizzles; the caller had done so already.",
        "both ends of the call; SwizzledScales refuses a second swizzle",
        _in_layouts(("", twice)),
    ),
)
