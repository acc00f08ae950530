// Part 2. tile_grid: the output tiles of the problem, and one of them.
#pragma once
#include "plan.cuh"

// CUTLASS's WorkTileInfo: tile indices, and whether there is work.
struct WorkTile {
    u32 m, n, l;
    bool valid;
};

// Output tiles of the problem; x runs along the raster dimension. Frame 2.1.
struct TileGrid {
    u32 tiles_m, tiles_n, batches;

    // Frame 2.2.
    __device__ __forceinline__ WorkTile tile(u32 x, u32 y, u32 z) const {
        return RASTER_ALONG_M ? WorkTile{x, y, z, true} : WorkTile{y, x, z, true};
    }

    __device__ __forceinline__ WorkTile tile_of_number(u32 number) const {
        if (number >= tiles_m * tiles_n * batches) return {0, 0, 0, false};
        const u32 along_x = RASTER_ALONG_M ? tiles_m : tiles_n;
        const u32 along_y = RASTER_ALONG_M ? tiles_n : tiles_m;
        return tile(number % along_x, number / along_x % along_y, number / (along_x * along_y));
    }
};
