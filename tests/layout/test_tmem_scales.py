import numpy as np
import pytest

from fp4ref.errors import LayoutError
from fp4ref.layout import (
    sfb_column_shift,
    sfb_smem_rows,
    sfb_start,
    swizzle_scales,
    tmem_scale_position,
)


def test_scale_33_2_is_in_lane_1_of_every_quarter_column_1_byte_2() -> None:
    position = tmem_scale_position(33, 2)
    assert position == ((1, 33, 65, 97), 1, 2)


def test_positions_follow_the_copy_byte_by_byte() -> None:
    # 32 rows of 16 bytes; word w of row r goes to lane r, column w, in each quarter.
    scales = np.random.default_rng(3).integers(0, 256, (256, 4), dtype=np.uint8)
    tmem = np.zeros((128, 8, 4), dtype=np.uint8)
    for atom, flat in enumerate(swizzle_scales(scales).reshape(2, 512)):
        for quarter in range(4):
            lanes = slice(32 * quarter, 32 * quarter + 32)
            tmem[lanes, 4 * atom : 4 * atom + 4] = flat.reshape(32, 4, 4)
    for row in range(256):
        for s in range(4):
            lanes, column, byte = tmem_scale_position(row, s)
            assert (tmem[list(lanes), column, byte] == scales[row, s]).all()


@pytest.mark.parametrize(("row", "s"), [(256, 0), (-1, 0), (0, 4), (0, -1)])
def test_a_scale_outside_the_block_is_refused(row: int, s: int) -> None:
    with pytest.raises(LayoutError, match=r"rows are 0\.\.255, scales 0\.\.3"):
        tmem_scale_position(row, s)


@pytest.mark.parametrize(
    ("tile_n", "starts"),
    [
        (64, [(0, 0), (0, 2), (1, 0), (1, 2)]),
        (128, [(0, 0), (1, 0), (2, 0), (3, 0)]),
        (192, [(0, 0), (1, 2), (3, 0), (4, 2)]),
        (256, [(0, 0), (2, 0), (4, 0), (6, 0)]),
        (32, [(0, 0), (0, 1), (0, 2), (0, 3)]),
    ],
)
def test_where_the_scales_of_an_n_tile_start(
    tile_n: int, starts: list[tuple[int, int]]
) -> None:
    assert [sfb_start(tile_n, n) for n in range(4)] == starts
    assert {type(part) for n in range(4) for part in sfb_start(tile_n, n)} == {int}
    assert [sfb_column_shift(tile_n, n) for n in range(4)] == [s for _, s in starts]


@pytest.mark.parametrize("tile_n", [32, 64, 128, 192, 256])
def test_start_and_shift_lead_to_the_first_row_of_the_tile(tile_n: int) -> None:
    rows = np.arange(2048)
    for n_tile in range(6):
        atom, shift = sfb_start(tile_n, n_tile)
        window = rows[128 * atom :]
        first = next(r for r in range(256) if tmem_scale_position(r, 0).column == shift)
        assert window[first] == tile_n * n_tile


def test_sfb_in_shared_memory_is_whole_atoms() -> None:
    assert [sfb_smem_rows(n) for n in (64, 128, 192, 256)] == [128, 128, 256, 256]


@pytest.mark.parametrize("tile_n", [0, 8, 48, 100, 288])
def test_a_tile_that_starts_inside_a_column_is_refused(tile_n: int) -> None:
    with pytest.raises(LayoutError, match=f"tile_n: {tile_n}; need a multiple of 32"):
        sfb_column_shift(tile_n, 1)


def test_a_negative_tile_number_is_refused() -> None:
    with pytest.raises(
        LayoutError, match="n_tile: -1; need a whole number of at least 0"
    ):
        sfb_start(64, -1)
