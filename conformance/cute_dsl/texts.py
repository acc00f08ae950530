"""Four kernels in CuTe DSL: FP16 and NVFP4 products, by one CTA and by pairs of CTAs.

    python texts.py NAME M N K FILE.ptx

compiles one of `KERNELS` for sm_100a, which needs no GPU. Warp 0 loads, warp 1 of the
leader multiplies, all four store D in float32: the accumulator's own bits.
"""

import os
import sys
from pathlib import Path

os.environ["CUTE_DSL_ARCH"] = "sm_100a"
os.environ["CUTE_DSL_KEEP_PTX"] = "1"

import cutlass
import cutlass.cute as cute
import cutlass.utils.blackwell_helpers as blackwell
import cutlass.utils.blockscaled_layout as scale_layouts
from cutlass import memory, pipeline
from cutlass.cute.nvgpu import cpasync, tcgen05
from cutlass.cute.runtime import make_fake_stream, make_ptr

WARPS = 4
STAGES = 2
TILE_N = 128
BLOCK = 16
"""K elements under one scale."""


class Gemm:
    """D = A * B^T, K-major operands, whole tiles.

    Parameters
    ----------
    scaled
        NVFP4 with scale factors instead of FP16.
    pair
        MMAs of two CTAs, each of which holds half of A's rows and of B's.
    """

    def __init__(self, scaled, pair):
        self.scaled, self.pair = scaled, pair
        self.ctas = 2 if pair else 1
        self.group = tcgen05.CtaGroup.TWO if pair else tcgen05.CtaGroup.ONE
        self.kind = cutlass.Float4E2M1FN if scaled else cutlass.Float16
        self.tile = (128 * self.ctas, TILE_N, 256 if scaled else 64)

    def mma(self, group, rows):
        """Return the MMA of one instruction's shape."""
        shape = (rows, TILE_N, 64 if self.scaled else 16)
        if self.scaled:
            source = tcgen05.OperandSource.SMEM
            op = tcgen05.MmaMXF4NVF4Op(cutlass.Float8E4M3FN, shape, group, source)
        else:
            major = cute.nvgpu.OperandMajorMode.K
            source = tcgen05.OperandSource.SMEM
            accumulate = cutlass.Float32
            op = tcgen05.MmaF16BF16Op(
                self.kind, accumulate, shape, group, source, major, major
            )
        return cute.make_tiled_mma(op)

    @cute.jit
    def __call__(
        self,
        a: cute.Pointer,
        b: cute.Pointer,
        sfa: cute.Pointer,
        sfb: cute.Pointer,
        d: cute.Pointer,
        size: tuple,
        stream,
    ):
        """Make layouts and tensor maps, and launch."""
        m, n, k = size
        mma = self.mma(self.group, self.tile[0])
        # Each CTA of a pair holds the scales of all columns of B.
        mma_of_sfb = self.mma(tcgen05.CtaGroup.ONE, 128)
        tile_of_sfb = (128, TILE_N, self.tile[2])
        cluster = cute.make_layout((self.ctas, 1, 1))
        ranks = cute.tiled_divide(cluster, (mma.thr_id.shape,))
        ranks_of_sfb = cute.tiled_divide(cluster, (mma_of_sfb.thr_id.shape,))

        rows = {"a": m, "b": n}
        tensors = {
            name: cute.make_tensor(
                pointer,
                cute.make_layout(
                    (rows[name], cute.assume(k, 32), 1),
                    stride=(cute.assume(k, 32), 1, cute.assume(rows[name] * k, 32)),
                ),
            )
            for name, pointer in (("a", a), ("b", b))
        }
        out = cute.make_tensor(
            d,
            cute.make_layout(
                (m, cute.assume(n, 16), 1),
                stride=(cute.assume(n, 16), 1, cute.assume(m * n, 16)),
            ),
        )
        smem_a = blackwell.make_smem_layout_a(mma, self.tile, self.kind, STAGES)
        smem_b = blackwell.make_smem_layout_b(mma, self.tile, self.kind, STAGES)
        first = (None, None, None, 0)
        op_a = blackwell.cluster_shape_to_tma_atom_A((self.ctas, 1), mma.thr_id)
        op_b = blackwell.cluster_shape_to_tma_atom_B((self.ctas, 1), mma.thr_id)
        stage_a, stage_b = cute.slice_(smem_a, first), cute.slice_(smem_b, first)
        load_a, from_a = cute.nvgpu.make_tiled_tma_atom_A(
            op_a, tensors["a"], stage_a, self.tile, mma, ranks.shape
        )
        load_b, from_b = cute.nvgpu.make_tiled_tma_atom_B(
            op_b, tensors["b"], stage_b, self.tile, mma, ranks.shape
        )
        nbytes = cute.size_in_bytes(self.kind, stage_a)
        nbytes += cute.size_in_bytes(self.kind, stage_b)
        scales = ()
        if cutlass.const_expr(self.scaled):
            shape = (mma, self.tile, BLOCK, STAGES)
            smem_sfa = scale_layouts.make_smem_layout_sfa(*shape)
            smem_sfb = scale_layouts.make_smem_layout_sfb(*shape)
            layouts = [
                scale_layouts.tile_atom_to_shape_SF(tensors[name].shape, BLOCK)
                for name in ("a", "b")
            ]
            stage_sfa = cute.slice_(smem_sfa, first)
            stage_sfb = cute.slice_(smem_sfb, first)
            load_sfa, from_sfa = cute.nvgpu.make_tiled_tma_atom_A(
                op_a,
                cute.make_tensor(sfa, layouts[0]),
                stage_sfa,
                self.tile,
                mma,
                ranks.shape,
                internal_type=cutlass.Int16,
            )
            load_sfb, from_sfb = cute.nvgpu.make_tiled_tma_atom_B(
                blackwell.cluster_shape_to_tma_atom_SFB((self.ctas, 1), mma.thr_id),
                cute.make_tensor(sfb, layouts[1]),
                stage_sfb,
                tile_of_sfb,
                mma_of_sfb,
                ranks_of_sfb.shape,
                internal_type=cutlass.Int16,
            )
            nbytes += cute.size_in_bytes(cutlass.Float8E4M3FN, stage_sfa)
            nbytes += cute.size_in_bytes(cutlass.Float8E4M3FN, stage_sfb)
            scales = (load_sfa, from_sfa, load_sfb, from_sfb, smem_sfa, smem_sfb)
        self.tx_bytes = nbytes * self.ctas
        self.kernel(
            mma,
            mma_of_sfb,
            load_a,
            from_a,
            load_b,
            from_b,
            scales,
            out,
            smem_a,
            smem_b,
            ranks,
            ranks_of_sfb,
        ).launch(
            grid=(m // 128, n // TILE_N, 1),
            block=(32 * WARPS, 1, 1),
            cluster=(self.ctas, 1, 1),
            stream=stream,
        )

    @cute.kernel
    def kernel(
        self,
        mma: cute.TiledMma,
        mma_of_sfb: cute.TiledMma,
        load_a: cute.CopyAtom,
        from_a: cute.Tensor,
        load_b: cute.CopyAtom,
        from_b: cute.Tensor,
        scales: tuple,
        out: cute.Tensor,
        smem_a: cute.ComposedLayout,
        smem_b: cute.ComposedLayout,
        ranks: cute.Layout,
        ranks_of_sfb: cute.Layout,
    ):
        """Compute one tile of D."""
        warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        thread, _, _ = cute.arch.thread_idx()
        x, y, _ = cute.arch.block_idx()
        peer, tile_m = x % self.ctas, x // self.ctas
        rank = ranks.get_flat_coord(cute.arch.block_idx_in_cluster())
        rank_of_sfb = ranks_of_sfb.get_flat_coord(cute.arch.block_idx_in_cluster())

        @cute.struct
        class Storage:
            full_and_empty: cute.struct.MemRange[cutlass.Int64, STAGES * 2]
            accumulator: cute.struct.MemRange[cutlass.Int64, 2]
            freed: cutlass.Int64
            tmem: cutlass.Int32

        smem = memory.SmemAllocator()
        storage = smem.allocate(Storage)
        in_a, in_b = (
            smem.allocate_tensor(
                element_type=self.kind,
                layout=layout.outer,
                byte_alignment=128,
                swizzle=layout.inner,
            )
            for layout in (smem_a, smem_b)
        )
        one = pipeline.CooperativeGroup(pipeline.Agent.Thread)
        everyone = pipeline.CooperativeGroup(
            pipeline.Agent.Thread, 32 * WARPS * self.ctas
        )
        loader, multiplier = pipeline.PipelineTmaUmma.create(
            barrier_storage=storage.full_and_empty.data_ptr(),
            num_stages=STAGES,
            producer_group=one,
            consumer_group=one,
            tx_count=self.tx_bytes,
            cta_layout_vmnk=ranks,
        ).make_participants()
        summer, storer = pipeline.PipelineUmmaAsync.create(
            barrier_storage=storage.accumulator.data_ptr(),
            num_stages=1,
            producer_group=one,
            consumer_group=everyone,
            cta_layout_vmnk=ranks,
        ).make_participants()

        tile_mk = cute.slice_(self.tile, (None, 0, None))
        tile_nk = cute.slice_(self.tile, (0, None, None))
        tile_mn = cute.slice_(self.tile, (None, None, 0))
        every = (None, None, None)
        mine = mma.get_slice(peer)
        parts_a = mine.partition_A(cute.local_tile(from_a, tile_mk, every))
        parts_b = mine.partition_B(cute.local_tile(from_b, tile_nk, every))
        parts_d = mine.partition_C(cute.local_tile(out, tile_mn, every))
        k_tiles = cute.size(parts_a, mode=[4])

        alone = cute.make_layout(1)
        to_a, tiles_a = cpasync.tma_partition(
            load_a,
            rank[2],
            alone,
            cute.group_modes(in_a, 0, 3),
            cute.group_modes(parts_a, 0, 3),
        )
        to_b, tiles_b = cpasync.tma_partition(
            load_b,
            rank[1],
            alone,
            cute.group_modes(in_b, 0, 3),
            cute.group_modes(parts_b, 0, 3),
        )
        tiles_a, tiles_b = tiles_a[(None, tile_m, None, 0)], tiles_b[(None, y, None, 0)]
        mask_a, mask_b, mask_sfb = None, None, None
        if cutlass.const_expr(self.pair):
            mask_a = cpasync.create_tma_multicast_mask(ranks, rank, mcast_mode=2)
            mask_b = cpasync.create_tma_multicast_mask(ranks, rank, mcast_mode=1)
            mask_sfb = cpasync.create_tma_multicast_mask(
                ranks_of_sfb, rank_of_sfb, mcast_mode=1
            )
        operand_a, operand_b = mma.make_fragment_A(in_a), mma.make_fragment_B(in_b)
        sums = mma.make_fragment_C(mma.partition_shape_C(self.tile[:2]))

        tmem = memory.TmemAllocator(
            storage.tmem.ptr,
            barrier_for_retrieve=pipeline.NamedBarrier(1, 32 * WARPS),
            is_two_cta=self.pair,
            two_cta_tmem_dealloc_mbar_ptr=storage.freed.ptr,
        )
        tmem.allocate(256)
        tmem.wait_for_alloc()
        base = tmem.retrieve_ptr(cutlass.Float32)
        sums = cute.make_tensor(base, sums.layout)

        if cutlass.const_expr(self.scaled):
            load_sfa, from_sfa, load_sfb, from_sfb, smem_sfa, smem_sfb = scales
            in_sfa, in_sfb = (
                smem.allocate_tensor(
                    element_type=cutlass.Float8E4M3FN, layout=layout, byte_alignment=128
                )
                for layout in (smem_sfa, smem_sfb)
            )
            parts_sfa = mine.partition_A(cute.local_tile(from_sfa, tile_mk, every))
            parts_sfb = mma_of_sfb.get_slice(peer).partition_B(
                cute.local_tile(from_sfb, tile_nk, every)
            )
            to_sfa, tiles_sfa = cpasync.tma_partition(
                load_sfa,
                rank[2],
                alone,
                cute.group_modes(in_sfa, 0, 3),
                cute.group_modes(parts_sfa, 0, 3),
            )
            to_sfb, tiles_sfb = cpasync.tma_partition(
                load_sfb,
                rank_of_sfb[1],
                cute.make_layout(cute.slice_(ranks_of_sfb, (0, None, 0, 0)).shape),
                cute.group_modes(in_sfb, 0, 3),
                cute.group_modes(parts_sfb, 0, 3),
            )
            to_sfa, to_sfb = cute.filter_zeros(to_sfa), cute.filter_zeros(to_sfb)
            tiles_sfa = cute.filter_zeros(tiles_sfa)[(None, tile_m, None, 0)]
            tiles_sfb = cute.filter_zeros(tiles_sfb)[(None, y, None, 0)]
            shape = (mma, self.tile, BLOCK)
            stage = (None, None, None, 0)
            beyond = tcgen05.find_tmem_tensor_col_offset(sums)
            tmem_sfa = cute.make_tensor(
                cute.recast_ptr(base + beyond, dtype=cutlass.Float8E4M3FN),
                scale_layouts.make_tmem_layout_sfa(
                    *shape, cute.slice_(smem_sfa, stage)
                ),
            )
            beyond = beyond + tcgen05.find_tmem_tensor_col_offset(tmem_sfa)
            tmem_sfb = cute.make_tensor(
                cute.recast_ptr(base + beyond, dtype=cutlass.Float8E4M3FN),
                scale_layouts.make_tmem_layout_sfb(
                    *shape, cute.slice_(smem_sfb, stage)
                ),
            )
            atom = cute.make_copy_atom(
                tcgen05.Cp4x32x128bOp(self.group), cutlass.Float8E4M3FN
            )
            copy_sfa = tcgen05.make_s2t_copy(atom, cute.filter_zeros(tmem_sfa))
            copy_sfb = tcgen05.make_s2t_copy(atom, cute.filter_zeros(tmem_sfb))
            source_sfa = tcgen05.get_s2t_smem_desc_tensor(
                copy_sfa, copy_sfa.get_slice(0).partition_S(cute.filter_zeros(in_sfa))
            )
            source_sfb = tcgen05.get_s2t_smem_desc_tensor(
                copy_sfb, copy_sfb.get_slice(0).partition_S(cute.filter_zeros(in_sfb))
            )
            target_sfa = copy_sfa.get_slice(0).partition_D(cute.filter_zeros(tmem_sfa))
            target_sfb = copy_sfb.get_slice(0).partition_D(cute.filter_zeros(tmem_sfb))

        if warp == 0:
            for _ in cutlass.range(k_tiles, unroll=1):
                slot = loader.acquire_and_advance()
                at, into = (None, slot.count), (None, slot.index)
                done = slot.barrier
                cute.copy(
                    load_a, tiles_a[at], to_a[into], tma_bar_ptr=done, mcast_mask=mask_a
                )
                cute.copy(
                    load_b, tiles_b[at], to_b[into], tma_bar_ptr=done, mcast_mask=mask_b
                )
                if cutlass.const_expr(self.scaled):
                    cute.copy(
                        load_sfa,
                        tiles_sfa[at],
                        to_sfa[into],
                        tma_bar_ptr=done,
                        mcast_mask=mask_a,
                    )
                    cute.copy(
                        load_sfb,
                        tiles_sfb[at],
                        to_sfb[into],
                        tma_bar_ptr=done,
                        mcast_mask=mask_sfb,
                    )
            loader.tail()

        if warp == 1 and peer == 0:
            summing = summer.acquire_and_advance()
            mma.set(tcgen05.Field.ACCUMULATE, False)
            for _ in cutlass.range(k_tiles, unroll=1):
                slot = multiplier.wait_and_advance()
                if cutlass.const_expr(self.scaled):
                    now = (None, None, None, None, slot.index)
                    cute.copy(copy_sfa, source_sfa[now], target_sfa)
                    cute.copy(copy_sfb, source_sfb[now], target_sfb)
                for block in cutlass.range_constexpr(4):
                    if cutlass.const_expr(self.scaled):
                        of_block = (None, None, block)
                        mma.set(tcgen05.Field.SFA, tmem_sfa[of_block].iterator)
                        mma.set(tcgen05.Field.SFB, tmem_sfb[of_block].iterator)
                    place = (None, None, block, slot.index)
                    cute.gemm(mma, sums, operand_a[place], operand_b[place], sums)
                    mma.set(tcgen05.Field.ACCUMULATE, True)
                slot.release()
            summing.commit()

        tmem.relinquish_alloc_permit()
        ready = storer.wait_and_advance()
        read = cute.make_copy_atom(
            tcgen05.Ld32x32bOp(tcgen05.Repetition.x128), cutlass.Float32
        )
        reader = tcgen05.make_tmem_copy(read, sums)
        lane = reader.get_slice(thread)
        values = lane.partition_S(sums)
        to_d = lane.partition_D(parts_d)[(None, None, None, None, tile_m, y, 0)]
        registers = cute.make_rmem_tensor(to_d.shape, cutlass.Float32)
        cute.copy(reader, values, registers)
        write = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cutlass.Float32)
        cute.copy(write, registers, to_d)
        ready.release()
        cute.arch.barrier()
        tmem.free(base)


KERNELS = {
    "fp16": (False, False),
    "fp16-pair": (False, True),
    "nvfp4": (True, False),
    "nvfp4-pair": (True, True),
}


def compile_kernel(name: str, m: int, n: int, k: int) -> str:
    """Return the PTX of a kernel for a product of whole tiles."""
    gemm = Gemm(*KERNELS[name])

    def pointer(kind):
        return make_ptr(kind, 0x10000, cute.AddressSpace.gmem, assumed_align=32)

    of_scales = pointer(cutlass.Float8E4M3FN)
    operand = pointer(gemm.kind)
    compiled = cute.compile(
        gemm,
        operand,
        operand,
        of_scales,
        of_scales,
        pointer(cutlass.Float32),
        (m, n, k),
        make_fake_stream(),
    )
    return compiled.__ptx__


if __name__ == "__main__":
    name, *size, path = sys.argv[1:]
    Path(path).write_text(compile_kernel(name, *map(int, size)))
