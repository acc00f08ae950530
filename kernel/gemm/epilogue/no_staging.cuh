// no_staging: each thread stores its row of D from registers.
//
// Neighbouring threads store to different rows, 16 bytes at a time: nothing is coalesced.
#pragma once
#include "../../hardware/gmem.cuh"
#include "row_addresses.cuh"

struct NoStaging {
    static __device__ __forceinline__ void acquire(const Epilogue&) {}

    // Store subtile i of a half, each thread its row. Frame 7.9.
    static __device__ __forceinline__ void put(const Epilogue& e, WorkTile work, u32 half, u32 i,
                                               const u32 (&words)[SUBTILE_N / 2]) {
        const u64 row = lane_index(), pitch = d_pitch(e.storage.params);
        const u32 first = i * SUBTILE_N * ELEMENT_NBYTES;
        const u64 address = d_addresses(e, work, half) + row * pitch + first;
        const u32 nbytes = row < rows_inside(e, work) ? row_nbytes(e, work, half) : 0;
#pragma unroll
        for (u32 chunk = 0; chunk < SUBTILE_N / 8; ++chunk)
            if (first + 16 * chunk < nbytes)
                gmem_st(address + 16 * chunk, u32x4{words[4 * chunk], words[4 * chunk + 1],
                                                    words[4 * chunk + 2], words[4 * chunk + 3]});
    }

    // It is in global memory.
    static __device__ __forceinline__ void written(const Epilogue&, WorkTile, u32) {}
    static __device__ __forceinline__ void store_part(const Epilogue&, WorkTile, u32, u32) {}
    static __device__ __forceinline__ void tail(const Epilogue&) {}
};
