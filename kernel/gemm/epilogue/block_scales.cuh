// block_scales: D as E2M1 with block scales SFD.
#pragma once
#include "../../hardware/gmem.cuh"
#include "../../hardware/smem.cuh"
#include "../../layout/swizzle.cuh"
#include "../../numerics/quantize.cuh"
#include "epilogue_state.cuh"

// CUTLASS's Sm100BlockScaleFactorRowStore. NORM_BITS: the norm constant as float32.
template <class Scale, u32 NORM_BITS>
struct BlockScaleFactorRowStore {
    // Write this thread's row of the subtile, and its scales. Frame 7.7.
    static __device__ __forceinline__ void write(const Epilogue& e, WorkTile work, u32 subtile,
                                                 const Subtile& z, u32 buffer) {
        u32 codes[4];
        const u16 scales = quantize_blocks<Scale>(z, from_bits(NORM_BITS), codes);
        store_scales(e, work, subtile, scales);
        smem_st(buffer + swizzled_offset<D_ROW_NBYTES>(e.row, 0),
                {codes[0], codes[1], codes[2], codes[3]});
    }

    // Write two SFD bytes of this row, in the 128x4 layout. Frame 7.7.
    //
    // Rows beyond M are written too: the buffer is padded to whole atoms, and its padding must
    // be 0.
    static __device__ __forceinline__ void store_scales(const Epilogue& e, WorkTile work,
                                                        u32 subtile, u16 scales) {
        const GemmParams& params = e.storage.params;
        const u32 column = e.column(work, subtile) / SFD_VEC_SIZE;
        constexpr u32 ATOM_N = 4 * SFD_VEC_SIZE;  // columns of D that one scale atom covers
        if (column * SFD_VEC_SIZE / ATOM_N >= (params.n + ATOM_N - 1) / ATOM_N) return;
        const u32 blocks = (params.m + 127) / 128;
        if (IN_CLUSTER && work.m * TILE_M / 128 >= blocks) return;  // a tile beyond the problem
        gmem_st(sfd_address(params, work.m * TILE_M + e.tile_row(), column, work.l), scales);
    }
};
