// block_scales: D as E2M1 with block scales SFD.
#pragma once
#include "../../hardware/gmem.cuh"
#include "../../hardware/smem.cuh"
#include "../../layout/swizzle.cuh"
#include "../../numerics/quantize.cuh"
#include "epilogue_state.cuh"

// CUTLASS's Sm100BlockScaleFactorRowStore, and for an M-major D ColStore. A row is one of D in
// memory, and a thread has it: CUTLASS's threads have a row of M, and ask each other for the
// maximum of 16 elements of a column. NORM_BITS: the norm constant as float32.
template <class Scale, u32 NORM_BITS>
struct BlockScaleFactorRowStore {
    static constexpr u32 PAIRS = SUBTILE_N / (2 * SFD_VEC_SIZE);  // of scales of a row

    // Write this thread's row of the subtile, and its scales. Frame 7.7.
    static __device__ __forceinline__ void write(const Epilogue& e, WorkTile work, u32 subtile,
                                                 const Subtile& z, u32 buffer) {
        u32 codes[SUBTILE_N / 8];
        u16 scales[PAIRS];
#pragma unroll
        for (u32 i = 0; i < PAIRS; ++i)
            scales[i] = quantize_blocks<Scale>(z + 32 * i, from_bits(NORM_BITS), codes + 4 * i);
        store_scales(e, work, subtile, scales);
#pragma unroll
        for (u32 i = 0; i < PAIRS; ++i)
            smem_st(buffer + swizzled_offset<D_ROW_NBYTES, LANES>(e.row, i),
                    {codes[4 * i], codes[4 * i + 1], codes[4 * i + 2], codes[4 * i + 3]});
    }

    // Write the SFD bytes of this row, in the 128x4 layout: up to four lie together. Frame 7.7.
    //
    // Rows beyond the last are written too: the buffer is padded to whole atoms, and its padding
    // must be 0. Beyond that padding there is nothing.
    static __device__ __forceinline__ void store_scales(const Epilogue& e, WorkTile work,
                                                        u32 subtile,
                                                        const u16 (&scales)[PAIRS]) {
        const GemmParams& params = e.storage.params;
        const u32 first = e.d_column(work, subtile) / SFD_VEC_SIZE;
        const u32 row = e.d_row(work, subtile);
        constexpr u32 ATOM_N = 4 * SFD_VEC_SIZE;  // columns of D that one scale atom covers
        const bool may_pass = IN_CLUSTER || TRANSPOSES;  // the padding of the last rows
        if (may_pass && row / ATOM_ROWS >= (params.d_rows() + ATOM_ROWS - 1) / ATOM_ROWS) return;
#pragma unroll
        for (u32 i = 0; i < PAIRS; i += 2) {
            const u32 column = first + 2 * i;
            const u32 atom = column * SFD_VEC_SIZE / ATOM_N;
            if (atom >= (params.d_columns() + ATOM_N - 1) / ATOM_N) return;
            const u64 address = sfd_address(params, row, column, work.l);
            if constexpr (PAIRS == 1)
                gmem_st(address, scales[0]);
            else
                gmem_st(address, scales[i] | static_cast<u32>(scales[i + 1]) << 16);
        }
    }
};
