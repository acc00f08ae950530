// padded_staging: rows of 272 bytes, read back and stored by the whole warp.
//
// Sixteen bytes of padding let the rows of eight threads, which write together, begin in
// different banks. A row is read by the warp at once, eight bytes a thread.
#pragma once
#include "../../hardware/smem.cuh"
#include "../../hardware/vec2.cuh"
#include "row_addresses.cuh"
#include "store_group.cuh"

template <u32 ROW_NBYTES>
struct PaddedStaging {
    // Every lane has read what the half held before. A warp with two halves has met since, when it
    // had written the other one.
    static __device__ __forceinline__ void acquire(const Epilogue&) {
        if constexpr (PENDING_HALVES == 0) warp_sync();
    }

    // Write subtile i of a half, each thread its row. Frame 7.7.
    static __device__ __forceinline__ void put(const Epilogue& e, WorkTile, u32 half, u32 i,
                                               const u32 (&words)[SUBTILE_N / 2]) {
        const u32 row = half_buffer<ROW_NBYTES>(e, half) + lane_index() * ROW_NBYTES;
        const u32 at = row + i * SUBTILE_N * ELEMENT_NBYTES;
#pragma unroll
        for (u32 chunk = 0; chunk < SUBTILE_N / 8; ++chunk)
            smem_st(at + 16 * chunk, {words[4 * chunk], words[4 * chunk + 1],
                                      words[4 * chunk + 2], words[4 * chunk + 3]});
    }

    // Every lane has written its row.
    static __device__ __forceinline__ void written(const Epilogue&, WorkTile, u32) { warp_sync(); }

    // Store as many rows of a half as come with one of its subtiles. Frame 7.9.
    static __device__ __forceinline__ void store_part(const Epilogue& e, WorkTile work, u32 half,
                                                      u32 i) {
        constexpr u32 COUNT = WARP_THREADS / HALF_SUBTILES;
        const u32 of_lane = lane_index() * sizeof(u32x2);
        const u32 buffer = half_buffer<ROW_NBYTES>(e, half) + of_lane;
        const u64 address = d_addresses(e, work, half) + of_lane;
        const u32 pitch = d_pitch(e.storage.params);
        const u32 rows = of_lane < row_nbytes(e, work, half) ? rows_inside(e, work) : 0;
#pragma unroll
        for (u32 row = i * COUNT; row < (i + 1) * COUNT; ++row) {
            const u32x2 words = vec2_ld_shared(buffer + row * ROW_NBYTES);
            if (row < rows) vec2_st_global(address + static_cast<u64>(row) * pitch, words);
        }
    }

    // The rows have been read by the warp itself.
    static __device__ __forceinline__ void tail(const Epilogue&) {}
};
