// in_smem: the accumulator is written to shared memory, and the formula reads it there.
//
// Each warp has 32 rows, swizzled like a tile of TMA in panels of 32 numbers, so that neither the
// rows nor the columns of it meet in one bank. A thread that reads a column of 32 has a row of the
// transpose: that is how a tile is stored across its accumulator's rows.
#pragma once
#include "../../hardware/smem.cuh"
#include "../../layout/swizzle.cuh"
#include "../../numerics/arithmetic.cuh"
#include "epilogue_state.cuh"

// A thread reads a row of what its warp has written, or a column.
struct InSmem {
    static constexpr u32 ROW_NBYTES = 4 * SUBTILE_N;
    static constexpr u32 PER_CHUNK = 4;

    // Write this thread's row, and read its row of D.
    static __device__ __forceinline__ void place(const Epilogue& e, Subtile& z) {
        constexpr u32 OF_PANEL = ROW_NBYTES < PANEL_NBYTES ? ROW_NBYTES : PANEL_NBYTES;
        const u32 buffer = e.storage.element_wise(0) + e.lane * OF_PANEL;
        const u32 row = e.row - e.lane;
        warp_sync();  // every lane has read the subtile before
#pragma unroll
        for (u32 chunk = 0; chunk < SUBTILE_N / PER_CHUNK; ++chunk)
            smem_st(buffer + swizzled_offset<ROW_NBYTES, LANES>(row, chunk),
                    z + PER_CHUNK * chunk);
        warp_sync();
        if constexpr (TRANSPOSES) {
#pragma unroll
            for (u32 j = 0; j < SUBTILE_N; ++j)
                z[j] = from_bits(smem_ld(
                    buffer + swizzled_offset<ROW_NBYTES, LANES>(j, row / PER_CHUNK) +
                    row % PER_CHUNK * 4));
        } else {
#pragma unroll
            for (u32 chunk = 0; chunk < SUBTILE_N / PER_CHUNK; ++chunk)
                smem_ld(buffer + swizzled_offset<ROW_NBYTES, LANES>(row, chunk),
                        z + PER_CHUNK * chunk);
        }
    }
};
