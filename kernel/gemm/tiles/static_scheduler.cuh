// Part 2. static_scheduler: which tile next, by a stride over the grid of tiles.
#pragma once
#include "../shared_storage.cuh"

// Persistent clusters, of one CTA or more, take every n-th tile of a cluster.
struct StaticTileScheduler {
    TileGrid grid;
    u32 number = 0;

    __device__ __forceinline__ explicit StaticTileScheduler(const SharedStorage& storage)
        : grid(storage.params.grid()) {}

    // Frame 2.2.
    __device__ __forceinline__ WorkTile initial_work() {
        number = blockIdx.x / CLUSTER_M;
        return grid.tile_of_number(number);
    }

    // Frame 2.4.
    __device__ __forceinline__ WorkTile fetch_next_work() {
        number += gridDim.x / CLUSTER_M;
        return grid.tile_of_number(number);
    }
};
