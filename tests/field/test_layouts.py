"""Scale layouts, padding and tensor maps as others report them: B17 to B27."""

from __future__ import annotations

import numpy as np
import pytest

import fp4ref
from fp4ref.errors import Fp4refError, InputError, LayoutError, TensorMapError
from fp4ref.hardware.tensor_map import DataType, TensorMap
from fp4ref.layout import (
    LaidOutScales,
    RaggedScales,
    SwizzledScales,
    SwizzleMode,
    layout_nbytes,
    padded_shape,
    sf_nbytes,
    sf_offset,
    sfb_start,
    swizzle_scales,
    tmem_scale_position,
)
from fp4ref.walk import random_problem

ADDRESS = 0x7F00_0000_0000


def scales(rows: int, cols: int) -> np.ndarray:
    return np.random.default_rng(rows).integers(1, 127, (rows, cols), np.uint8)


@pytest.mark.parametrize(
    ("row", "col", "cols", "offset"),
    [
        *((33, 5, 8, 533), (31, 3, 4, 499), (32, 0, 4, 4), (127, 3, 4, 511)),
        *((0, 4, 6, 512), (128, 0, 8, 1024), (128, 0, 6, 1024), (255, 5, 6, 2045)),
    ],
)
def test_b17_the_byte_of_a_scale(row: int, col: int, cols: int, offset: int) -> None:
    assert sf_offset(row, col, cols) == offset


def test_b17_every_byte_of_the_padded_matrix_is_one_scale() -> None:
    found = [sf_offset(r, c, 6) for r in range(256) for c in range(8)]
    assert sorted(found) == list(range(sf_nbytes(200, 6)))


@pytest.mark.parametrize("rows", [1, 31, 32, 127, 128, 129, 300])
def test_b18_there_and_back_and_never_twice(rows: int) -> None:
    for cols in range(1, 10):
        matrix = scales(rows, cols)
        laid = SwizzledScales(swizzle_scales(matrix), rows, cols)
        assert (laid.unswizzle() == matrix).all()
        with pytest.raises(LayoutError, match="already in the 128x4 layout"):
            swizzle_scales(laid)
        with pytest.raises(LayoutError):  # shaped as if it had no padding
            SwizzledScales(laid.data[..., :-1], rows, cols)


def test_b18_the_size_is_that_of_the_padding() -> None:
    assert (sf_nbytes(100, 6), padded_shape(100, 6)) == (1024, (128, 8))


def test_b19_padding_rows_are_zero_and_do_not_matter() -> None:
    rng = np.random.default_rng(1)
    a, b = (
        fp4ref.quantize(rng.standard_normal((20, 64)).astype(np.float32))
        for _ in range(2)
    )
    laid = a.swizzled_scales()
    mine = {sf_offset(r, c, 4) for r in range(20) for c in range(4)}
    rest = sorted(set(range(512)) - mine)
    assert not laid.data[rest].any()
    poisoned = laid.data.copy()
    poisoned[rest] = 0x7F
    again = fp4ref.BlockScaled(a.codes, SwizzledScales(poisoned, 20, 4))
    same = fp4ref.matmul(again, b).view(np.uint32) == fp4ref.matmul(a, b).view(
        np.uint32
    )
    assert same.all()


def test_b20_the_linear_layout_has_no_padding() -> None:
    assert layout_nbytes(1025, 32, "row_major") == 1025 * 32
    assert layout_nbytes(1025, 32, "128x4") == 1152 * 32
    assert LaidOutScales.of(scales(1025, 32)).data.size == 1025 * 32


def test_b21_a_gate_and_an_up_projection_are_padded_one_by_one() -> None:
    gate_and_up = scales(192, 4)
    apart = RaggedScales.of(gate_and_up, (96, 96))
    assert apart.offsets == (0, 512, 1024)
    assert (apart.group(1) == gate_and_up[96:]).all()
    joined = swizzle_scales(gate_and_up)
    assert joined.size == 1024
    # Split at 128 after joining, row 96 of the "gate" is row 0 of the up projection.
    wrong = SwizzledScales(joined[:512].copy(), 128, 4).unswizzle()
    assert (wrong[96] == gate_and_up[96]).all()
    assert padded_shape(1856, 4)[0] == 1920


def test_b22_a_scale_in_tensor_memory() -> None:
    place = tmem_scale_position(33, 2)
    assert (place.lanes, place.column, place.byte) == ((1, 33, 65, 97), 1, 2)


@pytest.mark.parametrize(
    ("tile_n", "starts"),
    [(64, [(0, 0), (0, 2), (1, 0), (1, 2)]), (192, [(0, 0), (1, 2), (3, 0), (4, 2)])],
)
def test_b23_where_the_scales_of_a_tile_of_b_start(
    tile_n: int, starts: list[tuple[int, int]]
) -> None:
    assert [sfb_start(tile_n, n) for n in range(4)] == starts


def test_b23_a_tile_that_is_no_part_of_an_atom_is_refused() -> None:
    with pytest.raises(LayoutError):
        sfb_start(48, 0)


def test_b24_packed_elements_in_a_tensor_map() -> None:
    """256 x 512 elements: strides in bytes, the box in elements."""
    fp4 = TensorMap(
        DataType.U4_ALIGN8B,
        ADDRESS,
        (512, 256),
        (256,),
        (256, 128),
        swizzle=SwizzleMode.B128,
    )
    assert fp4.box_nbytes == 16384
    bytes_ = TensorMap(DataType.UINT8, ADDRESS, (256, 256), (256,), (128, 128))
    assert bytes_.box_nbytes == 16384
    for box in ((512, 128), (288, 128)):
        with pytest.raises(TensorMapError):
            TensorMap(DataType.U4_ALIGN8B, ADDRESS, (512, 256), (256,), box)


@pytest.mark.parametrize("k", [80, 464])
def test_b25_rows_that_tma_cannot_address_say_the_rule(k: int) -> None:
    with pytest.raises(TensorMapError, match="16"):
        TensorMap(DataType.U4_ALIGN8B, ADDRESS, (k, 64), (k // 2,), (32, 64))
    with pytest.raises(InputError, match="K is a multiple of 32"):
        random_problem(16, 16, k)


def test_b25_padding_k_with_zeros_changes_no_bit() -> None:
    rng = np.random.default_rng(2)
    a, b = (
        fp4ref.quantize(rng.standard_normal((8, 464)).astype(np.float32))
        for _ in range(2)
    )

    def padded(q: fp4ref.BlockScaled) -> fp4ref.BlockScaled:
        return fp4ref.BlockScaled(
            np.pad(q.codes, ((0, 0), (0, 16))), np.pad(q.scales, ((0, 0), (0, 1)))
        )

    found = fp4ref.matmul(padded(a), padded(b))
    assert (found.view(np.uint32) == fp4ref.matmul(a, b).view(np.uint32)).all()


def test_b26_strides_are_bytes_and_one_fewer_than_the_dimensions() -> None:
    right = TensorMap(DataType.U4_ALIGN8B, ADDRESS, (512, 256), (256,), (256, 128))
    assert len(right.to_bytes()) == 128
    for strides in ((256, 65536), ()):
        with pytest.raises(Fp4refError):
            TensorMap(DataType.U4_ALIGN8B, ADDRESS, (512, 256), strides, (256, 128))


def test_b27_the_packed_shape_is_not_the_logical_one() -> None:
    q = fp4ref.quantize(np.ones((2, 512), np.float32))
    packed = q.packed()
    assert (q.shape, packed.shape, packed.strides) == ((2, 512), (2, 256), (256, 1))
    with pytest.raises(LayoutError, match="cannot be transposed"):
        q.transpose()
    with pytest.raises(InputError):
        fp4ref.quantize(np.ones((2, 511), np.float32))
