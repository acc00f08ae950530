"""lesson_02: exercises on layouts, tiles and the scale atom."""

from __future__ import annotations

from typing import Any

from fp4ref import frames
from fp4ref.layout import Layout, sf_nbytes, sf_offset
from fp4ref.lessons.exercise import exercise

_SIZE = 2048
_SCALES = _SIZE // 16


@exercise(
    "02.1",
    title="The byte of an element of A",
    frames=("3.1",),
    hints=(
        "K-major: the next k is the next element, the next row is 2048 elements on.",
        "The layout is (2048,2048):(2048,1), in elements.",
        "Two elements share a byte.",
    ),
    why=(
        "3 rows of 2,048 elements and 64 more lie before it, and two elements share a "
        "byte."
    ),
    # The claimed strides (1, 2048); an element for a byte.
    wrong=((3 + 64 * _SIZE) // 2, 3 * _SIZE + 64),
    unit="bytes",
)
def element_byte() -> int:
    """Evaluate the layout, two elements to a byte."""
    return Layout((_SIZE, _SIZE), (_SIZE, 1))((3, 64)) // 2


@exercise(
    "02.2",
    title="Bytes of SFA",
    frames=("3.4",),
    hints=(
        "A scale belongs to one row and to 16 elements of K, and is one byte.",
        "2048 rows of 128 scales; both are whole atoms, so there is no padding.",
    ),
    # One scale for 128 rows and 16 columns; one for 32 elements; one for each element.
    wrong=(_SIZE // 128 * _SCALES, _SIZE * _SIZE // 32, _SIZE * _SIZE),
    unit="bytes",
)
def sfa_bytes() -> int:
    """Count them with padding, of which there is none."""
    return sf_nbytes(_SIZE, _SCALES)


def _atoms_along_rows(row: int, col: int, cols: int) -> int:
    return sf_offset(row % 128, col % 4, 4) + 512 * (row // 128 + col // 4 * 2)


@exercise(
    "02.3",
    title="The byte of a scale",
    frames=("3.4",),
    hints=(
        "First find the atom: atoms follow each other along K, then along the rows.",
        "A row of atoms has cols / 4 of them, rounded up; an atom is 512 bytes.",
        "Inside an atom: 16 bytes for row % 32, 4 bytes for row / 32, 1 for the scale.",
    ),
    wrong=(
        lambda row, col, cols: row * cols + col,  # row-major
        lambda row, col, cols: sf_offset(row, col, cols // 4 * 4 or 4),  # no padding
        _atoms_along_rows,
        lambda row, col, cols: sf_offset(row // 128, col, cols),  # one for 128 rows
    ),
    cases=lambda: [(0, 0, 4), (37, 6, 32), (127, 15, 16), (200, 9, 10), (300, 5, 7)],
    unit="bytes",
)
def scale_offset(row: int, col: int, cols: int) -> int:
    """Ask the layout."""
    return sf_offset(row, col, cols)


@exercise(
    "02.4",
    title="A tile of A by MMA atoms",
    frames=("3.5",),
    hints=(
        "One `tcgen05.mma` takes all 128 rows of the tile.",
        "It takes K = 64: four scales of 16 elements for each row.",
    ),
    # Atoms of 16 rows and K = 256; one instruction for each 16 elements of K.
    wrong=([[16, 256], 8, 1], [[128, 16], 1, 16], [[128, 256], 1, 1]),
)
def tile_of_atoms() -> list[Any]:
    """Read the constructed frame."""
    shape: list[Any] = frames.show("3.5")["A"]
    return shape[:3]
