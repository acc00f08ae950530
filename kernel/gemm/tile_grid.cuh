// Part 2. tile_grid: the output tiles of the problem, and one of them.
#pragma once
#include "cta_in_cluster.cuh"
#include "plan.cuh"

// CUTLASS's WorkTileInfo: tile indices, and whether there is work.
struct WorkTile {
    u32 m, n, l;
    u32 split;  // which of the tile's slices of K
    bool valid;
};

// Output tiles of the problem, a CTA for each of their splits; x runs along the raster
// dimension. The grid is padded to whole clusters: a CTA beyond the problem loads for its
// cluster, and stores nothing. The splits of a tile follow each other along z, so that each
// starts after the ones before it: it waits for their sums. Frame 2.1.
struct TileGrid {
    u32 tiles_m, tiles_n, batches;

    // Clusters along the raster dimension, and along the other one.
    __device__ __forceinline__ u32 majors() const {
        const u32 along_m = (tiles_m + CLUSTER_M - 1) / CLUSTER_M;
        return RASTER_ALONG_M ? along_m : (tiles_n + CLUSTER_N - 1) / CLUSTER_N;
    }
    __device__ __forceinline__ u32 minors() const {
        const u32 along_n = (tiles_n + CLUSTER_N - 1) / CLUSTER_N;
        return RASTER_ALONG_M ? along_n : (tiles_m + CLUSTER_M - 1) / CLUSTER_M;
    }

    // Frame 2.2. A cluster keeps its shape whatever the raster.
    __device__ __forceinline__ WorkTile tile(u32 x, u32 y, u32 z) const {
        u32 major = x / CLUSTER_M, minor = y / CLUSTER_N;
        if constexpr (RASTER_SWIZZLE > 1) swizzle(major, minor);
        const u32 m = RASTER_ALONG_M ? major : minor, n = RASTER_ALONG_M ? minor : major;
        return {m * CLUSTER_M + x % CLUSTER_M, n * CLUSTER_N + y % CLUSTER_N, z / SPLITS,
                z % SPLITS, true};
    }

    // Tiles in all, those beyond the problem included.
    __device__ __forceinline__ u32 output_tiles() const {
        return majors() * minors() * CLUSTER_SIZE * batches;
    }

    // Number of an output tile, whatever the raster: equal for its splits.
    __device__ __forceinline__ u32 output_tile_index(WorkTile work) const {
        const u32 padded_m = (RASTER_ALONG_M ? majors() : minors()) * CLUSTER_M;
        const u32 padded_n = (RASTER_ALONG_M ? minors() : majors()) * CLUSTER_N;
        return work.m + padded_m * (work.n + padded_n * work.l);
    }

    // Exchange the places of clusters in bands; those beyond the last whole square stay.
    __device__ __forceinline__ void swizzle(u32& major, u32& minor) const {
        const u32 whole = majors() / RASTER_SWIZZLE, bands = minors() / RASTER_SWIZZLE;
        if (major >= whole * RASTER_SWIZZLE || minor >= bands * RASTER_SWIZZLE) return;
        const u32 from = major;
        major = from / RASTER_SWIZZLE + whole * (minor % RASTER_SWIZZLE);
        minor = from % RASTER_SWIZZLE + minor / RASTER_SWIZZLE * RASTER_SWIZZLE;
    }

    __device__ __forceinline__ WorkTile tile_of_number(u32 number) const {
        const u32 along_x = majors(), along_y = minors();
        if (number >= along_x * along_y * batches * SPLITS) return {0, 0, 0, 0, false};
        const CtaInCluster cta;
        return tile(number % along_x * CLUSTER_M + cta.m,
                    number / along_x % along_y * CLUSTER_N + cta.n,
                    number / (along_x * along_y));
    }
};
