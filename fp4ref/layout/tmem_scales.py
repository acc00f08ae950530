"""tmem_scales: where the scales of the 128x4 atom sit in tensor memory.

`tcgen05.cp.32x128b.warpx4` copies one 512-byte atom to 4 columns, and repeats it in all
four lane quarters:

    scale (row, s)  ->  lanes row%32 + {0, 32, 64, 96}, column row//32, byte s

One 32-bit word then holds the four scales of one row for K = 64. The atom is built for
this copy: a row-major (128, 4) tile would have to be transposed first. Source: PTX ISA,
tcgen05.cp and the scale-factor layouts of tcgen05.mma; CUTLASS ``tmem_sf_frg``.
"""

from __future__ import annotations

from typing import NamedTuple

from fp4ref.errors import LayoutError
from fp4ref.layout.int_tuple import whole
from fp4ref.layout.scale_factors import ATOM_COLS, ATOM_ROWS, padded_shape, scale_atom

LANES_PER_QUARTER = 32


class TmemScalePosition(NamedTuple):
    """Where one scale byte is, relative to the first column of the scales."""

    lanes: tuple[int, int, int, int]
    column: int
    byte: int


def tmem_scale_position(row: int, s: int) -> TmemScalePosition:
    """Give the place of scale (row, s) of one K = 64 block after the copy.

    Parameters
    ----------
    row
        Row of the tile, 0..255; rows from 128 on come from a second atom, copied to
        the 4 columns after the first.
    s
        Scale inside the block, 0..3.

    Raises
    ------
    LayoutError
        `row` or `s` is out of range.
    """
    row, s = whole(row, "row"), whole(s, "s")
    if not (0 <= row < 2 * ATOM_ROWS and 0 <= s < ATOM_COLS):
        raise LayoutError(
            f"row {row}, s {s} of a K = 64 block: rows are 0..255, scales 0..3"
        )
    atom, row_in_atom = divmod(row, ATOM_ROWS)
    # Smem row r of 16 bytes goes to lane r; its four words to four columns.
    lane, byte_in_lane = divmod(scale_atom((row_in_atom, s)), 16)
    column, byte = divmod(byte_in_lane, 4)
    quarters = (lane, lane + 32, lane + 64, lane + 96)
    return TmemScalePosition(quarters, 4 * atom + column, byte)


def sfb_start(tile_n: int, n_tile: int) -> tuple[int, int]:
    """Find the first scale of N tile number `n_tile`.

    TMA and the copy move whole atoms of 128 rows, and tiles of 64 or 192 need not
    start on one.

    Returns
    -------
    atom, column_shift
        The 128-row block of SFB to load first, and the TMEM columns to skip in it.

    Raises
    ------
    LayoutError
        `tile_n` is not a multiple of 32 up to 256: a tile would start inside a column.
    """
    _require_tile_n(tile_n)
    n_tile = whole(n_tile, "n_tile", 0)
    atom, row = divmod(n_tile * tile_n, ATOM_ROWS)
    return atom, row // LANES_PER_QUARTER


def sfb_column_shift(tile_n: int, n_tile: int) -> int:
    """Give the columns to add to the SFB address of the MMA. Frame 6.3.

    0 for tiles of 128 and 256; 0 or 2 for 64 and 192, 2 when `n_tile` is odd. Source:
    CUTLASS ``sm100_blockscaled_mma_warpspecialized.hpp``.

    Raises
    ------
    LayoutError
        As for `sfb_start`.
    """
    return sfb_start(tile_n, n_tile)[1]


def sfb_smem_rows(tile_n: int) -> int:
    """Count the rows of SFB that one stage holds: `tile_n` padded to whole atoms.

    Raises
    ------
    LayoutError
        As for `sfb_start`.
    """
    _require_tile_n(tile_n)
    return padded_shape(tile_n, ATOM_COLS)[0]


def _require_tile_n(tile_n: int) -> None:
    tile_n = whole(tile_n, "tile_n")
    if tile_n % LANES_PER_QUARTER or not 0 < tile_n <= 256:
        raise LayoutError(
            f"tile_n: {tile_n}; need a multiple of 32 up to 256. One TMEM column of "
            "scales covers 32 rows, and the MMA can only start at a column"
        )
