// Part 7. epilogue_state: what one thread of an epilogue warp holds.
#pragma once
#include "../shared_storage.cuh"

constexpr u32 QUARTERS = 4;  // of the TMEM lanes: a warp reaches one

struct Epilogue {
    const SharedStorage& storage;
    u32 taddr;
    Consumer<ACCUMULATOR_BARRIERS> accumulator;
    Consumer<C_STAGES> c;
    u32 lane;            // first TMEM lane of this warp
    u32 row;             // this thread's row of a C or D stage: its lane
    bool issues_stores;  // whether this is the warp that talks to TMA
    PipelineState store = {0, 1};      // of D, stored next: store_pipe_producer_state
    PipelineState load_wait = {0, 0};  // of C, waited for next, where D is written to it
    u32 unreleased = 0;                // stages of C whose store may still read them

    // Whether the tile is one of the problem, and not of a padded cluster.
    __device__ __forceinline__ bool is_inside(WorkTile work) const {
        const GemmParams& params = storage.params;
        return !IN_CLUSTER || (work.m * TILE_M < params.m && work.n * TILE_N < params.n);
    }

    // This thread's row of the tile, and the part of N that it has of it.
    __device__ __forceinline__ u32 tile_row() const {
        return COLUMN_PARTS == 1 ? row : row % TILE_M;
    }
    __device__ __forceinline__ u32 part() const { return COLUMN_PARTS == 1 ? 0 : row / TILE_M; }

    // The column of register j in a subtile.
    static __device__ __forceinline__ u32 column(u32 j) {
        if constexpr (TMEM_LOAD_LANES == WARP_THREADS) return j;
        return j % (SUBTILE_N / 2) / 4 * 8 + lane_index() % 4 * 2 + j % 2;
    }

    // The row of D of register j; it may lie outside.
    __device__ __forceinline__ u32 d_row(WorkTile work, u32 subtile, u32 j) const {
        if constexpr (TMEM_LOAD_LANES == WARP_THREADS) return d_row(work, subtile);
        const u32 of_half = j / (SUBTILE_N / 2) * TMEM_LOAD_LANES + j / 2 % 2 * 8;
        return work.m * TILE_M + warp_row() + of_half + lane_index() / 4;
    }

    // This thread's row of D; it may lie outside.
    __device__ __forceinline__ u32 d_row(WorkTile work, u32 subtile) const {
        if constexpr (TRANSPOSES) return accumulated_column(work, subtile) + row - lane;
        return work.m * TILE_M + tile_row();
    }

    // The first of its columns.
    __device__ __forceinline__ u32 d_column(WorkTile work, u32 subtile) const {
        if constexpr (TRANSPOSES) return work.m * TILE_M + warp_row();
        return accumulated_column(work, subtile);
    }

    // The first row of the tile that this warp has.
    __device__ __forceinline__ u32 warp_row() const {
        return COLUMN_PARTS == 1 ? lane : lane % TILE_M;
    }

    // The first column of a subtile in what the kernel multiplies.
    __device__ __forceinline__ u32 accumulated_column(WorkTile work, u32 subtile) const {
        return work.n * TILE_N + part() * PART_N + subtile * SUBTILE_N;
    }
};

using Subtile = float[SUBTILE_N];  // one row of it
