"""Document 001. collective_epilogue: sizes, layouts and types of an epilogue."""

from __future__ import annotations

from dataclasses import fields

from fp4ref.gemm.config import GemmConfig
from fp4ref.gemm.partition import output_map, pitch_elements, subtile_coords
from fp4ref.gemm.tile_scheduler import WorkTile
from fp4ref.hardware.tensor_map import DataType, TensorMap
from fp4ref.layout import Layout, SwizzleMode, zipped_divide
from fp4ref.lessons.truths.runs import EXAMPLE, opcode, shown

_HALF = DataType.FLOAT16
_WARP_GROUP = 128


def subtile_nbytes() -> int:
    """Bytes of one TMA load of a 64 x 64 subtile of half."""
    box = TensorMap(_HALF, 0, (2048, 2048), (4096,), (64, 64), swizzle=SwizzleMode.B128)
    return box.box_nbytes


def subtiles() -> int:
    """Subtiles of 64 x 64 in a tile of 128 x 128: size of the divide's second mode."""
    return zipped_divide(Layout((128, 128)), (64, 64))[1].size


def _map_of_c() -> TensorMap:
    return output_map(0, 2048, 2048, 1, _HALF)


def line_stride_nbytes() -> int:
    """First stride of the tensor map of a 2048 x 2048 half matrix."""
    return _map_of_c().strides[0]


def strides_of_a_map() -> int:
    """Strides that a map of rank 3 holds."""
    return len(_map_of_c().strides)


def map_rank() -> int:
    """Rank of the map of C: its third dimension is the batch."""
    return _map_of_c().rank


def swizzle_alignment() -> int:
    """Bytes to which a buffer with the 128-byte swizzle is aligned."""
    return SwizzleMode.B128.alignment


def d_stages_with_reuse() -> int:
    """Stages of D where it reuses C's memory: those of C. Example 72b."""
    return EXAMPLE.c_stages


def padded_cosize() -> int:
    """Cosize of a 64 x 64 layout whose columns are 72 apart."""
    return Layout((64, 64), (1, 72)).cosize


def m_major_step() -> int:
    """Distance of (0, 0) and (0, 1) in an M-major matrix of 1024 x 1024."""
    return Layout((1024, 1024), (1, 1024))((0, 1))


def row_major_step() -> int:
    """Distance of (0, 0) and (0, 1) in a row-major matrix of 2048 x 2048."""
    return Layout((2048, 2048), (2048, 1))((0, 1))


def mma_tiles_along_m() -> int:
    """MMA tiles along M where 128 rows are cut into tiles of 16."""
    return zipped_divide(Layout((128, 128)), (16, 8))[1][0].size


def valid_corner() -> int:
    """Elements of the last tile of 128 x 128 that lie inside 2050 x 2050."""
    residue = 2050 - 2050 // 128 * 128
    return residue * residue


def delays_store() -> bool:
    """DelayTmaStore for a C of half and a schedule without pointer arrays."""
    c_is_void, pointer_array = False, False
    return c_is_void and not pointer_array


def fragment_size() -> int:
    """Elements of a 64 x 32 subtile for each of 128 threads."""
    return 64 * 32 // _WARP_GROUP


def least_alignment() -> int:
    """Elements of half in the 16 bytes that TMA needs."""
    return pitch_elements(1, _HALF)


def row_swizzle_nbytes() -> int:
    """Span of the swizzle of a row of 32 half elements."""
    return GemmConfig.subtile_swizzle(_HALF).span


def prefetch_opcode() -> str:
    """PTX that prefetches a tensor map."""
    return opcode("prefetch")


def map_holds_multicast() -> bool:
    """Whether a tensor map has a field for the CTAs of a multicast."""
    return any(
        "cast" in field.name or "mask" in field.name for field in fields(TensorMap)
    )


def producer_phase() -> int:
    """Phase of a producer before its first stage."""
    return int(shown("5.1")["phase"])


def four_bit_subtile_nbytes() -> int:
    """Bytes of a 128 x 32 subtile of 4-bit elements in shared memory."""
    return EXAMPLE.d_subtile_nbytes


def corner_of_subtile() -> list[int]:
    """M and N of the first subtile of tile (0, 1)."""
    n, m, _ = subtile_coords(WorkTile(0, 1, 0), 0, 128)
    return [m, n]
