// Part 7. epilogue_state: what one thread of an epilogue warp holds.
#pragma once
#include "../shared_storage.cuh"

struct Epilogue {
    const SharedStorage& storage;
    u32 taddr;
    Consumer<ACCUMULATOR_BARRIERS> accumulator;
    Consumer<C_STAGES> c;
    u32 lane;            // first TMEM lane of this warp
    u32 row;             // this thread's row of a C or D stage: its lane
    bool issues_stores;  // whether this is the warp that talks to TMA
    u32 d_stage = 0;

    // This thread's row of the tile, and the part of N that it has of it.
    __device__ __forceinline__ u32 tile_row() const {
        return COLUMN_PARTS == 1 ? row : row % TILE_M;
    }
    __device__ __forceinline__ u32 part() const { return COLUMN_PARTS == 1 ? 0 : row / TILE_M; }

    // Its first column of D in a subtile.
    __device__ __forceinline__ u32 column(WorkTile work, u32 subtile) const {
        return work.n * TILE_N + part() * PART_N + subtile * SUBTILE_N;
    }
};

using Subtile = float[SUBTILE_N];  // one row of it
