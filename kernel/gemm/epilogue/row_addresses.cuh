// row_addresses: where a warp's rows of a half lie in D, without a tensor map.
#pragma once
#include "staged_rows.cuh"

// Bytes from one row of D to the next.
__device__ __forceinline__ u32 d_pitch(const GemmParams& params) {
    return (params.d_columns() * ELEMENT_NBYTES + 15) / 16 * 16;
}

// Global address of the first of this warp's rows of a half; some rows may lie outside.
__device__ __forceinline__ u64 d_addresses(const Epilogue& e, WorkTile work, u32 half) {
    const GemmParams& params = e.storage.params;
    const u64 row = static_cast<u64>(work.l) * params.d_rows() + work.m * TILE_M + e.lane;
    return params.d_address + row * d_pitch(params) + half_column(work, half) * ELEMENT_NBYTES;
}

// Bytes of a row of a half that are of D, with the padding of its last 16.
__device__ __forceinline__ u32 row_nbytes(const Epilogue& e, WorkTile work, u32 half) {
    const u32 first = half_column(work, half) * ELEMENT_NBYTES, end = d_pitch(e.storage.params);
    const u32 nbytes = end > first ? end - first : 0;
    return nbytes < HALF_N * ELEMENT_NBYTES ? nbytes : HALF_N * ELEMENT_NBYTES;
}

// How many of this warp's rows are of D: the first ones.
__device__ __forceinline__ u32 rows_inside(const Epilogue& e, WorkTile work) {
    const u32 first = work.m * TILE_M + e.lane, rows = e.storage.params.d_rows();
    const u32 inside = rows > first ? rows - first : 0;
    return inside < WARP_THREADS ? inside : WARP_THREADS;
}
