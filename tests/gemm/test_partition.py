"""Tensor maps of a problem, and the corner of every tile's box."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from fp4ref import BlockScaled, GemmConfig
from fp4ref.gemm.params import GemmParams
from fp4ref.gemm.partition import (
    a_coords,
    b_coords,
    pitch_elements,
    sfa_coords,
    sfb_coords,
    sfd_address,
    subtile_coords,
    tile_operand,
)
from fp4ref.gemm.plan import plan
from fp4ref.gemm.problem import GemmProblem
from fp4ref.gemm.tile_grid import WorkTile
from fp4ref.hardware.machine import Machine
from fp4ref.hardware.tensor_map import DataType, TensorMap
from fp4ref.layout import Layout


def params_of(m: int, n: int, k: int, batches: int = 1, **settings: Any) -> GemmParams:
    a, b = (
        BlockScaled(
            np.zeros((batches, rows, k), np.uint8),
            np.zeros((batches, rows, k // 16), np.uint8),
        )
        for rows in (m, n)
    )
    config = GemmConfig.nvfp4(**settings)
    return GemmProblem(Machine(1), a, b, None, None, config).params


def facts(m: TensorMap | None) -> tuple[Any, ...]:
    """Type, dims, strides below the batch, box and swizzle, as a dump shows them."""
    assert m is not None
    assert set(m.element_strides) == {1}
    assert (m.interleave, m.l2_promotion, m.oob_nan) == (0, 2, False)
    strides = m.strides if m.dims[-1] > 1 or m.rank == 4 else m.strides[:-1]
    return int(m.data_type), m.dims, strides, m.box, int(m.swizzle)


def test_the_maps_are_those_of_example_72b() -> None:
    """Read from 72b's launch with M=256, N=384, K=512."""
    p = params_of(256, 384, 512, d_format="nvfp4", c_format="f32")
    assert facts(p.a) == (13, (512, 256, 1), (256,), (256, 128, 1), 3)
    assert facts(p.b) == (13, (512, 384, 1), (256,), (256, 128, 1), 3)
    assert facts(p.sfa) == (1, (256, 8, 2, 1), (512, 4096, 8192), (256, 4, 1, 1), 0)
    assert facts(p.sfb) == (1, (256, 8, 3, 1), (512, 4096, 12288), (256, 4, 1, 1), 0)
    assert facts(p.c) == (7, (384, 256, 1), (1536,), (32, 128, 1), 3)
    assert facts(p.d) == (13, (384, 256, 1), (192,), (32, 128, 1), 0)


def test_the_maps_are_those_that_cutlass_builds_for_a_bf16_gemm() -> None:
    """M=512, N=768, K=1024."""
    p = params_of(512, 768, 1024, d_format="bf16")
    assert facts(p.a) == (13, (1024, 512, 1), (512,), (256, 128, 1), 3)
    assert facts(p.b) == (13, (1024, 768, 1), (512,), (256, 128, 1), 3)
    assert facts(p.sfa) == (1, (256, 16, 4, 1), (512, 8192, 32768), (256, 4, 1, 1), 0)
    assert facts(p.sfb) == (1, (256, 16, 6, 1), (512, 8192, 49152), (256, 4, 1, 1), 0)
    assert facts(p.d) == (9, (768, 512, 1), (1536,), (32, 128, 1), 2)
    assert p.c is None


def test_batches_follow_one_another() -> None:
    p = params_of(200, 70, 96, 3, d_format="f16")
    assert facts(p.a) == (13, (96, 200, 3), (48, 9600), (256, 128, 1), 3)
    assert facts(p.sfa) == (1, (256, 2, 2, 3), (512, 1024, 2048), (256, 4, 1, 1), 0)
    assert facts(p.d) == (6, (70, 200, 3), (144, 28800), (32, 128, 1), 2)


def test_a_tile_of_64_columns_loads_64_rows_of_b_and_a_whole_block_of_scales() -> None:
    p = params_of(128, 128, 256, tile_n=64)
    assert p.b.box == (256, 64, 1)
    assert p.sfb.box == (256, 4, 1, 1)


@pytest.mark.parametrize(
    ("data_type", "n", "pitch"),
    [
        (DataType.FLOAT32, 1, 4),
        (DataType.FLOAT32, 4, 4),
        (DataType.FLOAT32, 129, 132),
        (DataType.BFLOAT16, 1, 8),
        (DataType.FLOAT16, 300, 304),
        (DataType.U4_ALIGN8B, 1, 32),
        (DataType.U4_ALIGN8B, 300, 320),
    ],
)
def test_a_row_pitch_is_a_multiple_of_16_bytes(
    data_type: DataType, n: int, pitch: int
) -> None:
    assert pitch_elements(n, data_type) == pitch
    assert pitch * data_type.bits % 128 == 0


def test_an_odd_number_of_fp4_columns_makes_an_even_dimension() -> None:
    """U4_ALIGN8B takes no odd dimension 0; the pad column is cropped."""
    assert params_of(3, 33, 32, d_format="nvfp4").d.dims == (34, 3, 1)


def test_corners_are_element_offsets_fastest_dimension_first() -> None:
    work = WorkTile(2, 3, 4)
    wide, narrow = (plan(GemmConfig.nvfp4(tile_n=n)) for n in (128, 64))
    assert a_coords(work, 5, wide) == (1280, 256, 4)
    assert b_coords(work, 5, wide) == (1280, 384, 4)
    assert b_coords(work, 5, narrow) == (1280, 192, 4)
    assert sfa_coords(work, 5, wide) == (0, 20, 2, 4)
    assert sfb_coords(work, 5, wide) == (0, 20, 3, 4)
    assert sfb_coords(work, 5, narrow) == (0, 20, 1, 4)
    assert subtile_coords(work, 1, narrow) == (224, 256, 4)
    assert subtile_coords(work, 3, wide) == (480, 256, 4)


def test_two_neighbouring_tiles_of_64_share_a_block_of_scales() -> None:
    narrow = plan(GemmConfig.nvfp4(tile_n=64))
    blocks = [sfb_coords(WorkTile(0, n, 0), 0, narrow)[2] for n in range(6)]
    assert blocks == [0, 0, 1, 1, 2, 2]


@pytest.mark.parametrize(("m", "n"), [(1, 1), (128, 64), (129, 65), (300, 300)])
def test_scales_of_d_fill_their_buffer_one_to_one(m: int, n: int) -> None:
    p = params_of(m, n, 32, 2, d_format="nvfp4")
    rows, columns = -(-m // 128) * 128, -(-n // 64) * 4
    addresses = {
        sfd_address(p, row, column, batch)
        for batch in range(2)
        for row in range(rows)
        for column in range(columns)
    }
    assert addresses == set(range(p.sfd, p.sfd + 2 * rows * columns))


@pytest.mark.parametrize(
    ("row", "column", "columns", "offset"),
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
def test_scales_of_d_lie_where_the_atom_puts_them(
    row: int, column: int, columns: int, offset: int
) -> None:
    """B17's values."""
    p = params_of(256, 16 * columns, 32, d_format="nvfp4")
    assert sfd_address(p, row, column, 0) - p.sfd == offset


def test_scales_along_m_have_cutlasss_layout() -> None:
    """Its atom for an M-major D, tiled along M first, then N: B17's for the transpose.

    Source: ``Sm1xxBlockScaledBasicChunk::SfMNMajorAtom`` of 16 elements, and
    ``Sm1xxBlockScaledOutputConfig::tile_atom_to_shape_SFD``, ``Step<_1, _2, _3>``.
    """
    m, n = 200, 300
    atom = Layout(((16, 4), (32, 4)), ((0, 1), (16, 4)))
    atoms_m = -(-m // 64)
    p = params_of(m, n, 32, d_format="nvfp4", store="transposed", element_wise="smem")
    for i, j in itertools.product(range(0, m, 7), range(0, n, 5)):
        place = 512 * (i // 64 + atoms_m * (j // 128)) + atom((i % 64, j % 128))
        assert sfd_address(p, j, i // 16, 0) - p.sfd == place


def test_the_layout_of_a_tile_names_the_elements_of_its_box() -> None:
    m, k = 256, 768
    layout = tile_operand(m, k, 1, 2, (128, 256))
    offsets = np.arange(m * k).reshape(m, k)[128:256, 512:768]
    origin = int(offsets[0, 0])
    for i, j in ((0, 0), (127, 255), (3, 200), (64, 1)):
        assert layout((i, j)) == int(offsets[i, j]) - origin


@pytest.mark.parametrize(
    ("k", "k_tiles"), [(32, 1), (256, 1), (288, 2), (1056, 5), (1536, 6)]
)
def test_the_last_k_tile_may_be_partial(k: int, k_tiles: int) -> None:
    assert params_of(1, 1, k).k_tiles == k_tiles
