"""Parts 1 and 7. epilogue_values: what follows for C, for D and for the formula."""

from __future__ import annotations

import numpy as np

from fp4ref.gemm.fusion.col_broadcast import ColBroadcast
from fp4ref.gemm.fusion.linear_combination import linear_combination
from fp4ref.gemm.fusion.majorness import m_major
from fp4ref.gemm.fusion.node import Node
from fp4ref.gemm.fusion.row_broadcast import RowBroadcast
from fp4ref.gemm.fusion.src_fetch import SrcFetch
from fp4ref.gemm.plan.staging_values import HALF_N, StagingValues
from fp4ref.gemm.plan.warps import EPILOGUE_THREADS, WARP_THREADS
from fp4ref.gemm.why import deduced
from fp4ref.hardware.mbarrier_unit import NBYTES as BARRIER_NBYTES
from fp4ref.hardware.tensor_map import DataType
from fp4ref.layout import PANEL_NBYTES, SwizzleMode
from fp4ref.numerics.elements import element
from fp4ref.tensors.block_format import NVFP4_VEC_SIZE

_BUILDER = "CUTLASS sm100_blockscaled_umma_builder.inl"
_STORE = "CUTLASS sm100_epilogue_tma_warpspecialized.hpp"
_KERNEL = "CUTLASS sm100_gemm_tma_warpspecialized.hpp"
_TMA = "PTX: tensor swizzling modes"
_STREAM_K = "CUTLASS tile_scheduler_params.h, get_reduction_workspace_size"

_SPAN = "a row of a box is as long as the swizzle's span"

LOCK_NBYTES = 4
"""An integer for each output tile: CUTLASS's ``BarrierType``."""


class EpilogueValues(StagingValues):
    """The part of a `Plan` that the epilogue decides."""

    @deduced("asked: {value}, N of CUTLASS's EpilogueTile", _BUILDER)
    def subtile_n(self) -> int:
        """Columns of D that the epilogue handles at a time."""
        return self.config.epilogue.subtile_n

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

    @deduced("asked: {c.d_format}; a kernel without D has the type of none", _BUILDER)
    def d_type(self) -> DataType:
        """TMA element type of D."""
        return _data_type(self.config.epilogue.d_format or "f32")

    @deduced("d_format is {c.d_format}: None for no D", _STORE)
    def stages_d(self) -> bool:
        """Whether D goes through stages in shared memory, and by TMA."""
        return self.config.epilogue.d_format is not None

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
        """TMA boxes below each other: one a part, or one a warp to transpose."""
        return self.lanes // self.subtile_box_rows

    @deduced(
        f"those of a part of N, or the {WARP_THREADS} of a warp that transposes or "
        "stores them",
        _BUILDER,
    )
    def subtile_box_rows(self) -> int:
        """Rows of a box in shared memory."""
        if self.transposes or self.config.staging.staging == "swizzled":
            return WARP_THREADS
        return self.lanes // self.column_parts

    @property
    def _bias_node(self) -> Node | None:
        """The bias runs along N: along or across the rows of D in memory."""
        if not self.config.epilogue.bias:
            return None
        plain = self.config.epilogue.store == "plain"
        return RowBroadcast() if plain else ColBroadcast()

    @deduced("{p.lanes} x {c.subtile_n} float32 if element_wise is smem", _BUILDER)
    def element_wise_nbytes(self) -> int:
        """Shared memory of the accumulator's subtile."""
        return self.lanes * self.subtile_n * 4 if self.in_smem else 0

    @deduced(
        "activation(beta * C + (alpha * acc + bias)), innermost first; without C, or "
        "with beta 0, C is +0; or the tree asked for, as D lies in memory",
        "CUTLASS sm90_callbacks_tma_warpspecialized.hpp",
    )
    def fusion(self) -> Node:
        """The epilogue's formula as a tree of nodes."""
        config = self.config
        if isinstance(tree := config.epilogue.fusion, Node):
            return tree if config.epilogue.store == "plain" else m_major(tree)
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

    @deduced("{p.lanes} x {c.subtile_n} elements of {c.c_format}", _BUILDER)
    def c_subtile_nbytes(self) -> int:
        """One C stage."""
        if self.config.epilogue.c_format is None:
            return 0
        return self.lanes * self.subtile_n * self.c_type.bits // 8

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

    @deduced(f"{{p.subtile_n}} elements of C, at most {PANEL_NBYTES} bytes", _TMA)
    def c_box_row_nbytes(self) -> int:
        """One row of a TMA box of C: longer rows are in boxes side by side."""
        return min(self.subtile_n * self.c_type.bits // 8, PANEL_NBYTES)

    @deduced(f"a subtile, or {HALF_N} with a staging: {{p.staged}}", _TMA)
    def store_n(self) -> int:
        """Columns of D that are stored together."""
        return HALF_N if self.staged else self.subtile_n

    @deduced(f"{{p.store_n}} elements of D, at most {PANEL_NBYTES} bytes", _TMA)
    def d_box_row_nbytes(self) -> int:
        """One row of a TMA box of D: longer rows are in boxes side by side."""
        return min(self.store_n * self.d_type.bits // 8, PANEL_NBYTES)

    @deduced("{p.c_box_row_nbytes} bytes of C", _TMA)
    def c_box_n(self) -> int:
        """Columns of a TMA box of C."""
        return self.c_box_row_nbytes * 8 // self.c_type.bits

    @deduced("{p.d_box_row_nbytes} bytes of D", _TMA)
    def d_box_n(self) -> int:
        """Columns of a TMA box of D."""
        return self.d_box_row_nbytes * 8 // self.d_type.bits

    @deduced("{p.subtile_boxes} of each of the panels of {p.c_box_n} columns", _TMA)
    def c_boxes(self) -> int:
        """TMA boxes of a subtile of C."""
        return self.subtile_boxes * (self.subtile_n // self.c_box_n)

    @deduced("{p.subtile_boxes} of each of the panels of {p.d_box_n} columns", _TMA)
    def d_boxes(self) -> int:
        """TMA boxes of the columns of D that are stored together."""
        return self.subtile_boxes * (self.store_n // self.d_box_n)

    @deduced("asked: {value}", _BUILDER)
    def d_stages(self) -> int:
        """D stages, each written again when its store has read it.

        Where D lies in C's stages, stores that may still read theirs.
        """
        return self.config.epilogue.d_stages

    @deduced("{p.lanes} x {c.subtile_n} elements of {c.d_format}", _BUILDER)
    def d_subtile_nbytes(self) -> int:
        """One subtile of D."""
        if not self.stages_d:
            return 0
        return self.lanes * self.subtile_n * self.d_type.bits // 8

    @deduced("asked: {value}; D is written to the stage that C came in", _STORE)
    def reuse_smem_c(self) -> bool:
        """Whether D lies in C's memory: CUTLASS's ``ReuseSmemC``."""
        return self.config.epilogue.reuse_smem_c

    @deduced("asked: {value}; a store starts when the next subtile is computed", _STORE)
    def delay_tma_store(self) -> bool:
        """Whether a store starts a subtile later: CUTLASS's ``DelayTmaStore``."""
        return self.config.epilogue.delay_tma_store

    @deduced("those of C with reuse_smem_c={p.reuse_smem_c}, else of D", _STORE)
    def store_stages(self) -> int:
        """Stages that D is written to in turn: those of its ``StorePipeline``.

        With a staging the halves of a tile.
        """
        if self.staged:
            return self.staging_halves
        asked = self.config.epilogue
        return asked.c_stages if self.reuse_smem_c else asked.d_stages

    @deduced(
        "C is read: {p.loads_c}; then the store of D gives a stage back that both use",
        _STORE,
    )
    def store_releases_c(self) -> bool:
        """Whether C's stage is given back when D's store has read it."""
        return self.reuse_smem_c and self.loads_c

    @deduced(
        "rows of {p.c_row_nbytes} bytes of C and {p.d_row_nbytes} of D: a thread's row "
        "of D lies in another thread's of C unless they are as long",
        _STORE,
    )
    def waits_for_c(self) -> bool:
        """Whether all threads must have read C before one writes D into its stage."""
        return self.store_releases_c and self.c_row_nbytes != self.d_row_nbytes

    @deduced(
        "store_releases_c={p.store_releases_c}, delay_tma_store={p.delay_tma_store}: "
        "with either, the next stage is waited for right after a store",
        _STORE,
    )
    def acquires_ahead(self) -> bool:
        """Whether a stage of D is waited for before the next subtile is computed."""
        return self.store_releases_c or self.delay_tma_store

    @deduced(
        "C's {p.c_subtile_nbytes:,} or D's {p.d_subtile_nbytes:,}, whichever is more, "
        "if they share it",
        _STORE,
    )
    def store_stage_nbytes(self) -> int:
        """From one stage of D to the next."""
        if self.staged:
            return self.staging_half_nbytes
        nbytes = self.d_subtile_nbytes
        return max(nbytes, self.c_subtile_nbytes) if self.reuse_smem_c else nbytes

    @deduced(_SPAN, _BUILDER)
    def c_swizzle(self) -> SwizzleMode:
        """Swizzle of a C subtile in shared memory."""
        return SwizzleMode.of_span(self.c_box_row_nbytes)

    @deduced(_SPAN, _BUILDER)
    def d_swizzle(self) -> SwizzleMode:
        """Swizzle of a D subtile in shared memory."""
        return SwizzleMode.of_span(self.d_box_row_nbytes)

    @deduced(
        "{p.store_stages} of {p.store_stage_nbytes:,} for D, and C in them: "
        "{p.reuse_smem_c}; else {c.c_stages} of {p.c_subtile_nbytes:,} for C",
        _STORE,
    )
    def epilogue_nbytes(self) -> int:
        """Shared memory of the C and D stages in the budget formula.

        With what the formula is computed on, if that is shared memory. Where D lies in
        C's memory it is the size of CUTLASS's ``SharedStorage``: behind the stages are
        an empty struct for the formula, and the barriers of C's ring, each as long as
        the alignment that the swizzle asks for.
        """
        of_d = self.store_stages * self.store_stage_nbytes
        if not self.reuse_smem_c:
            of_c = self.config.epilogue.c_stages * self.c_subtile_nbytes
            return of_c + of_d + self.element_wise_nbytes
        alignment = max(self.c_swizzle.alignment, self.d_swizzle.alignment)
        tensors = _rounded(of_d + 1, alignment)
        barriers = 2 * BARRIER_NBYTES * self.config.epilogue.c_stages
        return _rounded(tensors + barriers, alignment) + self.element_wise_nbytes


def _rounded(nbytes: int, alignment: int) -> int:
    """The next multiple of an alignment."""
    return -(-nbytes // alignment) * alignment


def _data_type(format: str) -> DataType:
    """TMA element type of C or D."""
    return DataType[element(format).tma or ""]
