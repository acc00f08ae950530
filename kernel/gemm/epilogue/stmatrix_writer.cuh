// stmatrix_writer: D in a 16-bit element type, stored as matrices of 8 x 8.
#pragma once
#include "../../hardware/smem.cuh"
#include "../../layout/swizzle.cuh"
#include "../../numerics/elements.cuh"
#include "epilogue_state.cuh"

template <class Element>
struct StmatrixWriter {
    static_assert(Element::PER_CHUNK == 8, "stmatrix stores elements of 16 bits");

    // Write this warp's rows of the subtile. Frame 7.7.
    //
    // Two matrices below each other, and the two on their right; lane 8 q + r has the address of
    // row r of matrix q.
    static __device__ __forceinline__ void write(const Epilogue& e, WorkTile, u32,
                                                 const Subtile& z, u32 buffer) {
        const u32 q = lane_index() / 8, r = lane_index() % 8;
#pragma unroll
        for (u32 half = 0; half < 2; ++half) {
#pragma unroll
            for (u32 chunk = 0; chunk < SUBTILE_N / Element::PER_CHUNK; chunk += 2) {
                const u32 row = e.lane + half * TMEM_LOAD_LANES + q % 2 * 8 + r;
                const u32 at = swizzled_offset<D_ROW_NBYTES, LANES>(row, chunk + q / 2);
                smem_stmatrix(buffer + at,
                              Element::encode(z + half * (SUBTILE_N / 2) + 4 * chunk));
            }
        }
    }
};
