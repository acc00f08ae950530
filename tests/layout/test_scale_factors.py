import numpy as np
import pytest
from numpy.typing import NDArray

from fp4ref.errors import InputError, LayoutError
from fp4ref.layout import (
    SwizzledScales,
    element_scale_layout,
    padded_shape,
    scale_atom,
    scale_layout,
    sf_nbytes,
    sf_offset,
    swizzle_scales,
    unswizzle_scales,
)

ROWS = [1, 31, 32, 127, 128, 129, 300]
COLS = range(1, 10)


def random_scales(*shape: int) -> NDArray[np.uint8]:
    return np.random.default_rng(7).integers(1, 256, shape, dtype=np.uint8)


def offset_by_arithmetic(row: int, col: int, num_cols: int) -> int:
    """The same byte, written out without a layout."""
    col_blocks = (num_cols + 3) // 4
    block = (row // 128) * col_blocks + col // 4
    return block * 512 + (row % 32) * 16 + (row % 128) // 32 * 4 + col % 4


@pytest.mark.parametrize(
    ("row", "col", "num_cols", "byte"),
    [
        (33, 5, 8, 533),
        (31, 3, 4, 499),
        (32, 0, 4, 4),
        (127, 3, 4, 511),
        (0, 4, 6, 512),
        (128, 0, 8, 1024),
        (128, 0, 6, 1024),
        (255, 5, 6, 2045),
    ],
)
def test_the_byte_of_a_scale(row: int, col: int, num_cols: int, byte: int) -> None:
    assert sf_offset(row, col, num_cols) == byte


@pytest.mark.parametrize(("rows", "cols"), [(128, 4), (256, 8), (300, 9), (1, 1)])
def test_offsets_are_a_bijection_onto_the_padded_bytes(rows: int, cols: int) -> None:
    padded_rows, padded_cols = padded_shape(rows, cols)
    offsets = scale_layout(rows, cols).offsets()
    assert offsets.shape == (padded_rows, padded_cols)
    assert sorted(offsets.ravel().tolist()) == list(range(sf_nbytes(rows, cols)))
    for row in range(0, padded_rows, 7):
        for col in range(padded_cols):
            expected = offset_by_arithmetic(row, col, cols)
            assert offsets[row, col] == sf_offset(row, col, cols) == expected


def test_the_layouts_print_as_cutlass_prints_them() -> None:
    assert repr(scale_atom) == "((32,4),4):((16,4),1)"
    cutlass = "(((32,4),4),((16,4),16)):(((16,4),8192),((0,1),512))"
    assert repr(element_scale_layout(512, 1024)) == cutlass


def test_all_elements_of_a_block_share_a_scale() -> None:
    elements = element_scale_layout(200, 160)
    for row, k in [(0, 0), (130, 15), (130, 16), (199, 159)]:
        assert elements((row, k)) == sf_offset(row, k // 16, 10)


@pytest.mark.parametrize(("row", "col"), [(-1, 0), (0, -1), (0, 8)])
def test_a_scale_outside_the_matrix_is_refused(row: int, col: int) -> None:
    with pytest.raises(LayoutError, match=r"columns are 0\.\.7 for 6 columns"):
        sf_offset(row, col, 6)


def test_sizes_pad_rows_to_128_and_columns_to_4() -> None:
    assert padded_shape(100, 6) == (128, 8)
    assert sf_nbytes(100, 6) == 1024
    assert padded_shape(1856, 32) == (1920, 32)
    assert sf_nbytes(1025, 32) == 1152 * 32
    with pytest.raises(LayoutError, match="at least 1"):
        sf_nbytes(0, 4)


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("cols", COLS)
def test_unswizzle_undoes_swizzle(rows: int, cols: int) -> None:
    scales = random_scales(rows, cols)
    flat = swizzle_scales(scales)
    assert flat.shape == (sf_nbytes(rows, cols),)
    assert (unswizzle_scales(flat, rows, cols) == scales).all()
    for row, col in [(0, 0), (rows - 1, cols - 1), (rows // 2, cols // 2)]:
        assert flat[offset_by_arithmetic(row, col, cols)] == scales[row, col]


def test_every_padding_byte_is_zero() -> None:
    flat = swizzle_scales(np.full((20, 4), 0x7F, dtype=np.uint8))
    padding = np.ones(512, dtype=bool)
    padding[scale_layout(20, 4).offsets()[:20, :4]] = False
    assert flat.nbytes == 512
    assert padding.sum() == 512 - 80
    assert (flat[padding] == 0).all()
    assert (flat[~padding] == 0x7F).all()


def test_what_the_padding_holds_does_not_reach_the_scales() -> None:
    scales = random_scales(20, 3)
    poisoned = np.full(512, 0x7F, dtype=np.uint8)
    inside = scale_layout(20, 3).offsets()[:20, :3]
    poisoned[inside] = swizzle_scales(scales)[inside]
    assert (unswizzle_scales(poisoned, 20, 3) == scales).all()


def test_a_batch_is_swizzled_matrix_by_matrix() -> None:
    scales = random_scales(3, 130, 5)
    flat = swizzle_scales(scales)
    assert flat.shape == (3, 2048)
    for batch in range(3):
        assert (flat[batch] == swizzle_scales(scales[batch])).all()
    assert (unswizzle_scales(flat, 130, 5) == scales).all()


def test_gate_and_up_must_be_padded_before_they_are_joined() -> None:
    gate, up = random_scales(96, 4), random_scales(96, 4)[::-1].copy()
    apart = np.concatenate([swizzle_scales(gate), swizzle_scales(up)])
    joined = swizzle_scales(np.concatenate([gate, up]))
    assert apart.nbytes == joined.nbytes == 1024
    # Split after 128 rows, row 96 of "gate" is padding or the first row of up.
    assert (unswizzle_scales(apart[:512], 128, 4)[96] == 0).all()
    assert (unswizzle_scales(joined[:512], 128, 4)[96] == up[0]).all()


def test_a_second_swizzle_scrambles_raw_bytes_and_is_refused_by_the_container() -> None:
    scales = random_scales(128, 8)
    flat = swizzle_scales(scales)
    assert (swizzle_scales(flat.reshape(128, 8)) != flat).any()
    container = SwizzledScales(flat, 128, 8)
    with pytest.raises(LayoutError, match="already in the 128x4 layout"):
        container.swizzle()
    with pytest.raises(LayoutError, match="already in the 128x4 layout"):
        swizzle_scales(container)


def test_the_container_keeps_a_read_only_copy() -> None:
    flat = swizzle_scales(random_scales(100, 6))
    container = SwizzledScales(flat, 100, 6)
    before = int(flat[0])
    flat[0] ^= 0xFF
    assert container.data[0] == before
    with pytest.raises(ValueError, match="read-only"):
        container.data[0] = 0
    assert container.nbytes == 1024
    assert container.unswizzle().shape == (100, 6)


def test_the_padded_buffer_is_not_the_unpadded_matrix() -> None:
    flat = swizzle_scales(random_scales(100, 6))
    with pytest.raises(ValueError, match="reshape"):
        flat.reshape(100, 6)
    with pytest.raises(LayoutError, match=r"take 1024 bytes .* Keep the buffer flat"):
        SwizzledScales(flat[:600], 100, 6)
    with pytest.raises(LayoutError, match="600 bytes; rows 100 and cols 6"):
        unswizzle_scales(flat[:600], 100, 6)


def test_scales_that_are_not_codes_are_refused() -> None:
    with pytest.raises(InputError, match="dtype float32; need the uint8 codes"):
        swizzle_scales(np.ones((4, 4), dtype=np.float32))  # type: ignore[arg-type]
    with pytest.raises(InputError, match="at least 2 dimensions"):
        swizzle_scales(np.ones(4, dtype=np.uint8))
