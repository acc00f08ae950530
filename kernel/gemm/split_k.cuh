// Part 2. split_k: the k-tiles of an output tile, divided over several work units.
//
// Where the division leaves a rest, the first splits have one k-tile more. With more splits
// than k-tiles the last ones are empty slices, which add nothing.
#pragma once
#include "plan.cuh"

// Which k-tiles belong to which split.
struct SplitK {
    u32 k_tiles;

    // First k-tile of a split.
    __device__ __forceinline__ u32 k_idx(u32 split) const {
        if constexpr (SPLITS == 1) return 0;
        const u32 rest = k_tiles % SPLITS;
        return split * (k_tiles / SPLITS) + (split < rest ? split : rest);
    }

    // k-tiles of a split; 0 of an empty slice.
    __device__ __forceinline__ u32 k_tile_count(u32 split) const {
        if constexpr (SPLITS == 1) return k_tiles;
        return k_tiles / SPLITS + (split < k_tiles % SPLITS);
    }

    // Whether it has the last k-tile: this one alone computes the epilogue. An empty slice ends
    // there too, and has nothing to give.
    __device__ __forceinline__ bool is_final_split(u32 split) const {
        if constexpr (SPLITS == 1) return true;
        const u32 count = k_tile_count(split);
        return count > 0 && k_idx(split) + count == k_tiles;
    }
};
