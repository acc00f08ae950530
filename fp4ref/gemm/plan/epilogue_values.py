"""Parts 1 and 7. epilogue_values: what follows for C, for D and for the formula."""

from __future__ import annotations

import numpy as np

from fp4ref.gemm.config import SUBTILE_N, GemmConfig
from fp4ref.gemm.fusion.col_broadcast import ColBroadcast
from fp4ref.gemm.fusion.linear_combination import linear_combination
from fp4ref.gemm.fusion.node import Node
from fp4ref.gemm.fusion.row_broadcast import RowBroadcast
from fp4ref.gemm.fusion.src_fetch import SrcFetch
from fp4ref.gemm.plan.warps import EPILOGUE_THREADS, WARP_THREADS
from fp4ref.gemm.why import deduced
from fp4ref.hardware.tensor_map import DataType
from fp4ref.layout import SwizzleMode
from fp4ref.numerics.elements import element
from fp4ref.tensors.block_format import NVFP4_VEC_SIZE

_BUILDER = "CUTLASS sm100_blockscaled_umma_builder.inl"
_KERNEL = "CUTLASS sm100_gemm_tma_warpspecialized.hpp"
_STREAM_K = "CUTLASS tile_scheduler_params.h, get_reduction_workspace_size"

LOCK_NBYTES = 4
"""An integer for each output tile: CUTLASS's ``BarrierType``."""


class EpilogueValues:
    """The part of a `Plan` that the epilogue decides."""

    config: GemmConfig

    @deduced(
        "{c.tile_m} rows of D in {c.cta_group} CTAs: with 64 in each, the second half "
        "of N is in lanes 64 to 127",
        "PTX: data path layout organization",
    )
    def column_parts(self) -> int:
        """Parts of N that lie in the same TMEM columns: 2 for a pair with M = 128."""
        config = self.config
        return 2 if (config.tile.m, config.cluster.cta_group) == (128, 2) else 1

    @deduced("{c.tile_n} columns in {p.column_parts} parts", "PTX: data path layout")
    def part_n(self) -> int:
        """Columns of a part, which are an accumulator's TMEM columns."""
        return self.config.tile.n // self.column_parts

    @deduced("{p.column_parts} parts of each row", "PTX: data path layout organization")
    def lanes(self) -> int:
        """TMEM lanes of an accumulator, which are the rows of a C or D stage."""
        rows = self.config.tile.m // self.config.cluster.cta_group
        return rows * self.column_parts

    @deduced(
        "C is {c.c_format} and beta is {c.beta}: read if both are there, or a tree "
        "has C",
        _KERNEL,
    )
    def loads_c(self) -> bool:
        """Whether C is read: it exists and beta is not 0, or it is in the tree."""
        asked = self.config.epilogue
        if isinstance(asked.fusion, Node):
            return any(isinstance(each, SrcFetch) for each in asked.fusion.walk())
        return asked.c_format is not None and asked.beta != 0

    @deduced(
        "asked: {c.c_format}; a kernel without C has the type of none",
        _BUILDER,
    )
    def c_type(self) -> DataType:
        """TMA element type of C."""
        return _data_type(self.config.epilogue.c_format or "f32")

    @deduced("asked: {c.d_format}", _BUILDER)
    def d_type(self) -> DataType:
        """TMA element type of D."""
        return _data_type(self.config.epilogue.d_format)

    @deduced(
        "store is {c.store}, swap_ab is {c.swap_ab}: true if just one of them asks for "
        "it",
        "PTX: tcgen05.mma, D = A * B",
    )
    def transposes(self) -> bool:
        """Whether a tile of D is stored across the rows of its accumulator."""
        transposed = self.config.epilogue.store == "transposed"
        return transposed != self.config.operands.swap_ab

    @deduced("asked: tcgen05.ld.{c.tmem_load}", "PTX: tcgen05.ld")
    def tmem_load_lanes(self) -> int:
        """TMEM lanes of one load of an epilogue warp, which has 32."""
        return 16 if self.config.epilogue.tmem_load == "16x256b" else WARP_THREADS

    @deduced("asked: {c.element_wise}", _BUILDER)
    def in_smem(self) -> bool:
        """Whether the formula is computed on shared memory."""
        return self.config.epilogue.element_wise == "smem"

    @deduced("{p.lanes} rows in boxes of {p.subtile_box_rows}", _BUILDER)
    def subtile_boxes(self) -> int:
        """TMA boxes of a subtile of C or D: one a part, or one a warp to transpose."""
        return self.lanes // self.subtile_box_rows

    @deduced(
        f"those of a part of N, or the {WARP_THREADS} of a warp that transposes them",
        _BUILDER,
    )
    def subtile_box_rows(self) -> int:
        """Rows of a box in shared memory."""
        return WARP_THREADS if self.transposes else self.lanes // self.column_parts

    @property
    def _bias_node(self) -> Node | None:
        """The bias runs along N: along or across the rows of D in memory."""
        if not self.config.epilogue.bias:
            return None
        plain = self.config.epilogue.store == "plain"
        return RowBroadcast() if plain else ColBroadcast()

    @deduced(f"{{p.lanes}} x {SUBTILE_N} float32 if element_wise is smem", _BUILDER)
    def element_wise_nbytes(self) -> int:
        """Shared memory of the accumulator's subtile."""
        return self.lanes * SUBTILE_N * 4 if self.in_smem else 0

    @deduced(
        "activation(beta * C + (alpha * acc + bias)), innermost first; without C, or "
        "with beta 0, C is +0; or the tree asked for",
        "CUTLASS sm90_callbacks_tma_warpspecialized.hpp",
    )
    def fusion(self) -> Node:
        """The epilogue's formula as a tree of nodes."""
        config = self.config
        if isinstance(config.epilogue.fusion, Node):
            return config.epilogue.fusion
        return linear_combination(
            beta=config.epilogue.beta,
            source=config.epilogue.c_format if self.loads_c else None,
            bias=self._bias_node,
            activation=config.epilogue.activation,
        )

    @deduced(
        "splits={c.splits}: with more, a float32 of each of {p.epilogue_threads} "
        "threads for every TMEM column",
        _STREAM_K,
    )
    def sums_nbytes(self) -> int:
        """Partial sums of an output tile in the workspace of split-K."""
        if self.config.tiles.splits == 1:
            return 0
        return self.part_n * EPILOGUE_THREADS * np.float32().nbytes

    def workspace_nbytes(self, output_tiles: int) -> int:
        """Global memory of split-K: the sums of every output tile, then its lock."""
        lock = LOCK_NBYTES if self.sums_nbytes else 0
        return output_tiles * (self.sums_nbytes + lock)

    @deduced(f"{{p.lanes}} x {SUBTILE_N} elements of {{c.c_format}}", _BUILDER)
    def c_subtile_nbytes(self) -> int:
        """One C stage."""
        if self.config.epilogue.c_format is None:
            return 0
        return self.lanes * SUBTILE_N * self.c_type.bits // 8

    @deduced("asked: {value} sets of scale columns", "PTX: order of tcgen05.cp and mma")
    def scale_buffers(self) -> int:
        """Sets of scale columns in TMEM."""
        return self.config.mainloop.scale_buffers

    @deduced("NVFP4: elements of a row of D that share a scale", _BUILDER)
    def sfd_vec_size(self) -> int:
        """Elements of a block of D with one scale, where D has scales."""
        return NVFP4_VEC_SIZE

    @deduced("{p.c_subtile_nbytes:,} bytes in {p.lanes} rows", _BUILDER)
    def c_row_nbytes(self) -> int:
        """One row of a C stage."""
        return self.c_subtile_nbytes // self.lanes

    @deduced("{p.d_subtile_nbytes:,} bytes in {p.lanes} rows", _BUILDER)
    def d_row_nbytes(self) -> int:
        """One row of a D stage."""
        return self.d_subtile_nbytes // self.lanes

    @deduced("asked: {value}", _BUILDER)
    def d_stages(self) -> int:
        """D stages, each written again when its store has read it."""
        return self.config.epilogue.d_stages

    @deduced(f"{{p.lanes}} x {SUBTILE_N} elements of {{c.d_format}}", _BUILDER)
    def d_subtile_nbytes(self) -> int:
        """One D stage."""
        return self.lanes * SUBTILE_N * self.d_type.bits // 8

    @deduced(
        f"a row of {SUBTILE_N} elements is as long as the swizzle's span", _BUILDER
    )
    def c_swizzle(self) -> SwizzleMode:
        """Swizzle of a C subtile in shared memory."""
        return subtile_swizzle(self.c_type)

    @deduced(
        f"a row of {SUBTILE_N} elements is as long as the swizzle's span", _BUILDER
    )
    def d_swizzle(self) -> SwizzleMode:
        """Swizzle of a D subtile in shared memory."""
        return subtile_swizzle(self.d_type)

    @deduced(
        "{c.c_stages} of C with {p.c_subtile_nbytes:,}, {c.d_stages} of D with "
        "{p.d_subtile_nbytes:,}; here D does not lie in C's memory",
        _BUILDER,
    )
    def epilogue_nbytes(self) -> int:
        """Shared memory of the C and D stages, which are apart in this kernel.

        With what the formula is computed on, if that is shared memory.
        """
        of_c = self.config.epilogue.c_stages * self.c_subtile_nbytes
        of_d = self.config.epilogue.d_stages * self.d_subtile_nbytes
        return of_c + of_d + self.element_wise_nbytes


def _data_type(format: str) -> DataType:
    """TMA element type of C or D."""
    return DataType[element(format).tma or ""]


def subtile_swizzle(data_type: DataType) -> SwizzleMode:
    """Swizzle of a 128 x 32 subtile in shared memory."""
    return SwizzleMode.of_span(SUBTILE_N * data_type.bits // 8)
