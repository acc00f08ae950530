"""gemm: a product by one CTA or by pairs of CTAs, its launch and its kernel."""

import cutlass
import cutlass.cute as cute
import operands
import pipelines
import roles
import scales
from cutlass import memory
from cutlass.cute.nvgpu import tcgen05
from tiling import TILE_N, WARPS, Place, Tiling


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
        self.tile_of_sfb = (128, *self.tile[1:])

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
        cluster = cute.make_layout((self.ctas, 1, 1))
        ranks = cute.tiled_divide(cluster, (mma.thr_id.shape,))
        ranks_of_sfb = cute.tiled_divide(cluster, (mma_of_sfb.thr_id.shape,))
        tiling = Tiling(mma, self.tile, ranks)
        of_sfb = Tiling(mma_of_sfb, self.tile_of_sfb, ranks_of_sfb)

        of_a, of_b = operands.matrix(a, m, k, 32), operands.matrix(b, n, k, 32)
        out = operands.matrix(d, m, n, 16)
        maps, nbytes = operands.tensor_maps(tiling, self.kind, self.ctas, of_a, of_b)
        scale_maps, scale_nbytes = (), 0
        if cutlass.const_expr(self.scaled):
            scale_maps, scale_nbytes = scales.tensor_maps(
                tiling, of_sfb, self.ctas, (of_a.shape, of_b.shape), (sfa, sfb)
            )
        self.tx_bytes = (nbytes + scale_nbytes) * self.ctas
        self.kernel(mma, mma_of_sfb, maps, scale_maps, out, ranks, ranks_of_sfb).launch(
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
        maps: tuple,
        scale_maps: tuple,
        out: cute.Tensor,
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
        tiling = Tiling(mma, self.tile, ranks)
        place = Place(peer, rank, tile_m, y)

        smem = memory.SmemAllocator()
        storage = pipelines.allocate(smem)
        stages = operands.stages(smem, self.kind, maps)
        loader, multiplier = pipelines.loads_to_mmas(storage, ranks, self.tx_bytes)
        summer, storer = pipelines.mmas_to_stores(storage, ranks, self.ctas)
        parts = operands.parts(tiling, peer, maps, out)
        loads = operands.loads(place, ranks, maps, parts, stages, self.pair)
        fragments = mma.make_fragment_A(stages[0]), mma.make_fragment_B(stages[1])
        sums = mma.make_fragment_C(mma.partition_shape_C(self.tile[:2]))
        tmem = pipelines.allocate_tmem(storage, self.pair)
        base = tmem.retrieve_ptr(cutlass.Float32)
        sums = cute.make_tensor(base, sums.layout)
        copies = ()
        if cutlass.const_expr(self.scaled):
            both = tiling, Tiling(mma_of_sfb, self.tile_of_sfb, ranks_of_sfb)
            places = place, Place(peer, rank_of_sfb, tile_m, y)
            into = scales.stages(smem, scale_maps)
            loads += scales.loads(both, places, scale_maps, into, loads[0].mask)
            copies = scales.copies(tiling, self.group, scale_maps, into, base, sums)

        k_tiles = cute.size(parts[0], mode=[4])
        if warp == 0:
            roles.load(loader, loads, k_tiles)
        if warp == 1 and peer == 0:
            roles.multiply(mma, multiplier, summer, fragments, copies, sums, k_tiles)
        tmem.relinquish_alloc_permit()
        roles.store(storer, thread, sums, parts[2], (tile_m, y))
        cute.arch.barrier()
        tmem.free(base)
