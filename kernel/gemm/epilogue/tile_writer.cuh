// Part 7. tile_writer: D through shared memory, by TMA.
#pragma once
#include "../parts.cuh"
#include "store_pipeline.cuh"

// Store a stage of D: one warp sends all of it. Frame 7.9.
__device__ __forceinline__ void send_subtile(Epilogue& e, Fusion& fusion, WorkTile work,
                                             u32 subtile) {
    const u32 buffer = store_buffer(e);
    synchronize();
    if (e.issues_stores) {
        const bool elected = elect_sync() && e.is_inside(work);
#pragma unroll
        for (u32 box = 0; box < D_BOXES; ++box) {
            const Coords3 corner = subtile_coords(work, subtile, box, D_BOX_N);
            tma_store(elected, e.storage.params.d, corner.x / D_PER_COORDINATE, corner.y, corner.z,
                      buffer + box * SUBTILE_BOX_ROWS * D_BOX_ROW_NBYTES);
        }
    }
    walk(fusion, [&](auto& node) { node.tma_store(e, work, subtile); });
    if (e.issues_stores) tma_commit_group();
    advance_store(e);
    if constexpr (ACQUIRES_AHEAD) {
        acquire(e);
        release_c(e);
    }
}

// Write one subtile of D to shared memory, and SFD directly. Frame 7.9.
__device__ __forceinline__ void store_subtile(Epilogue& e, Fusion& fusion, WorkTile work,
                                              u32 subtile, const Subtile& z) {
    const u32 buffer = store_buffer(e);
    if constexpr (!ACQUIRES_AHEAD) acquire(e);
    Output::write(e, work, subtile, z, buffer);
    walk(fusion, [&](auto& node) { node.postreduce(e, work, subtile); });
    smem_fence_proxy_async();
    if constexpr (!DELAY_TMA_STORE) send_subtile(e, fusion, work, subtile);
}
