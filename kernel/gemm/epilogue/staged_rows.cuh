// staged_rows: the halves of a warp, and where their rows lie in shared memory.
#pragma once
#include "epilogue_state.cuh"

constexpr u32 ELEMENT_NBYTES = 2;
constexpr u32 HALF_SUBTILES = SUBTILES / STORE_STAGES;
constexpr u32 HALF_N = HALF_SUBTILES * SUBTILE_N;

// The halves that a warp brings: every `step`th from `first` on.
struct Halves {
    u32 first, step;
};

// All, or one of two: two warps of a lane quarter share its rows.
__device__ __forceinline__ Halves halves_of() {
    if constexpr (EPILOGUE_WARPS == QUARTERS) return {0, 1};
    const u32 number = warp_index() - EPILOGUE;
    return {number / QUARTERS, number % QUARTERS + QUARTERS < EPILOGUE_WARPS ? 2u : 1u};
}

// Shared address of this warp's rows of a half.
template <u32 ROW_NBYTES>
__device__ __forceinline__ u32 half_buffer(const Epilogue& e, u32 half) {
    return e.storage.d_subtile(half) + e.lane * ROW_NBYTES;
}

// The first column of D of a half.
__device__ __forceinline__ u32 half_column(WorkTile work, u32 half) {
    return work.n * TILE_N + half * HALF_N;
}
