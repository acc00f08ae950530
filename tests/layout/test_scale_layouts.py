"""scale_layouts: each by its own arithmetic, and none taken for another."""

from __future__ import annotations

import numpy as np
import pytest

from fp4ref import BlockScaled
from fp4ref.errors import InputError, LayoutError
from fp4ref.layout import (
    LaidOutScales,
    RaggedScales,
    layout_nbytes,
    scale_offsets,
    swizzle_scales,
)

LAYOUTS = ("row_major", "128x4", "8x4")
SHAPES = ((1, 1), (8, 4), (9, 5), (20, 4), (128, 4), (130, 9))


def byte(row: int, col: int, cols: int, layout: str) -> int:
    """Where a scale lies, from the nesting [tile rows, tile columns, ...]."""
    if layout == "row_major":
        return row * cols + col
    rows = {"128x4": 128, "8x4": 8}[layout]
    tile = row // rows * -(-cols // 4) + col // 4
    inside = row % rows
    if layout == "128x4":
        return tile * 512 + inside % 32 * 16 + inside // 32 * 4 + col % 4
    return tile * 32 + inside * 4 + col % 4


def scales(rows: int, cols: int) -> np.ndarray:
    return np.random.default_rng(rows).integers(1, 127, (rows, cols), np.uint8)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("rows", "cols"), SHAPES)
def test_every_scale_lies_where_it_should(rows: int, cols: int, layout: str) -> None:
    matrix = scales(rows, cols)
    laid = LaidOutScales.of(matrix, layout)  # type: ignore[arg-type]
    want = np.zeros(laid.data.shape, np.uint8)
    for row, col in np.ndindex(rows, cols):
        want[byte(row, col, cols, layout)] = matrix[row, col]
    assert (laid.data == want).all()
    assert (laid.matrix() == matrix).all()
    for other in LAYOUTS:
        moved = laid.convert(other)  # type: ignore[arg-type]
        assert moved.layout == other
        assert (moved.matrix() == matrix).all()


def test_8x4_has_rows_of_four_in_blocks_of_32_bytes() -> None:
    """Scales (0, 3), (7, 0), (8, 0) and (8, 4) of 9 x 5."""
    offsets = scale_offsets(9, 5, "8x4")
    assert offsets[[0, 7, 8, 8], [3, 0, 0, 4]].tolist() == [3, 28, 64, 96]


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.float32, bool])
def test_only_codes_are_laid_out(dtype: type) -> None:
    with pytest.raises(InputError, match="need a uint8 matrix of codes"):
        LaidOutScales.of(np.ones((8, 4), dtype), "8x4")


@pytest.mark.parametrize("layout", LAYOUTS)
def test_rows_are_counted_from_zero_and_columns_from_one(layout: str) -> None:
    assert layout_nbytes(0, 1, layout) == 0  # type: ignore[arg-type]
    for rows, cols in ((-1, 4), (4, 0)):
        with pytest.raises(InputError, match="need a whole number of at least"):
            layout_nbytes(rows, cols, layout)  # type: ignore[arg-type]


def test_128x4_is_that_of_the_kernel() -> None:
    matrix = scales(300, 6)
    assert (LaidOutScales.of(matrix, "128x4").data == swizzle_scales(matrix)).all()


def test_equal_sizes_are_not_equal_layouts() -> None:
    """128 rows and 4 columns take 512 bytes in all three."""
    assert {layout_nbytes(128, 4, each) for each in LAYOUTS} == {512}  # type: ignore[arg-type]
    matrix = scales(128, 4)
    read = {
        each: LaidOutScales(swizzle_scales(matrix), 128, 4, each).matrix()  # type: ignore[arg-type]
        for each in LAYOUTS
    }
    assert (read["128x4"] == matrix).all()
    assert (read["8x4"] != matrix).any()
    assert (read["row_major"] != matrix).any()


def test_a_matrix_takes_any_layout_that_says_its_name() -> None:
    matrix = scales(20, 4)
    codes = np.zeros((20, 64), np.uint8)
    for layout in LAYOUTS:
        q = BlockScaled(codes, LaidOutScales.of(matrix, layout))  # type: ignore[arg-type]
        assert (q.scales == matrix).all()
    with pytest.raises(InputError):  # 24 * 4 bytes that do not say
        BlockScaled(codes, LaidOutScales.of(matrix, "8x4").data)


def test_laying_out_twice_is_refused() -> None:
    laid = LaidOutScales.of(scales(8, 4), "8x4")
    with pytest.raises(LayoutError, match="in the layout 8x4 already"):
        LaidOutScales.of(laid, "8x4")


@pytest.mark.parametrize("layout", LAYOUTS)
def test_another_size_is_refused(layout: str) -> None:
    nbytes = layout_nbytes(20, 6, layout)  # type: ignore[arg-type]
    with pytest.raises(LayoutError, match=f"take {nbytes} bytes"):
        LaidOutScales(np.zeros(nbytes + 1, np.uint8), 20, 6, layout)  # type: ignore[arg-type]


def test_groups_are_padded_one_by_one() -> None:
    counts = (96, 0, 96, 1, 130, 0)
    matrix = scales(sum(counts), 5)
    ragged = RaggedScales.of(matrix, counts)
    assert ragged.offsets == (0, 1024, 1024, 2048, 3072, 5120, 5120)
    assert len(ragged.data) == 5120
    start = 0
    for number, count in enumerate(counts):
        part = matrix[start : start + count]
        assert (ragged.group(number) == part).all()
        assert ragged.group(number).shape == (count, 5)
        start += count
    joined = swizzle_scales(matrix[:192])  # padded after joining: row 96 is misplaced
    assert (joined[:1024] != ragged.data[:1024]).any()


def test_groups_of_no_rows_at_all() -> None:
    ragged = RaggedScales.of(np.zeros((0, 4), np.uint8), (0, 0))
    assert ragged.offsets == (0, 0, 0)
    assert ragged.data.size == 0
    with pytest.raises(InputError, match="group 2; there are 2"):
        ragged.group(2)


@pytest.mark.parametrize("counts", [(3, 4), (9,), (-1, 9), (8.0,)])
def test_counts_are_those_of_the_rows(counts: tuple[int, ...]) -> None:
    with pytest.raises(InputError):
        RaggedScales.of(scales(8, 4), counts)
