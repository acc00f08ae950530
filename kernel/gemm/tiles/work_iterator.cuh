// Part 2. work_iterator: a role's way through its work units.
#pragma once
#include "../parts.cuh"

// The work unit at hand: an output tile, or a split of one. next() comes after the work on it;
// next_prefetch() before it, so that the answer about the following one arrives meanwhile.
struct WorkIterator {
    TileScheduler scheduler;
    WorkTile tile;

    __device__ __forceinline__ explicit WorkIterator(const SharedStorage& storage)
        : scheduler(storage), tile(scheduler.initial_work()) {}

    __device__ __forceinline__ bool has_work() const { return tile.valid; }

    __device__ __forceinline__ void next() { tile = scheduler.fetch_next_work(); }

    // Returns the one to work on.
    __device__ __forceinline__ WorkTile next_prefetch() {
        const WorkTile now = tile;
        next();
        return now;
    }
};
