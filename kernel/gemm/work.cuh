// Part 2. work: a role's way through its tiles.
#pragma once
#include "parts.cuh"

// The tile at hand. next() comes after the work on it; next_prefetch() before it, so that the
// answer about the following tile arrives meanwhile.
struct WorkIterator {
    TileScheduler scheduler;
    WorkTile tile;

    __device__ __forceinline__ explicit WorkIterator(const SharedStorage& storage)
        : scheduler(storage), tile(scheduler.initial_work()) {}

    __device__ __forceinline__ bool has_work() const { return tile.valid; }

    __device__ __forceinline__ void next() { tile = scheduler.fetch_next_work(); }

    // Returns the tile to work on.
    __device__ __forceinline__ WorkTile next_prefetch() {
        const WorkTile now = tile;
        next();
        return now;
    }
};
