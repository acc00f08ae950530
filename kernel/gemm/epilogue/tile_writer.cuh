// Part 7. tile_writer: D through shared memory, by TMA.
#pragma once
#include "../../hardware/tma.cuh"
#include "../parts.cuh"

// Write one subtile of D through shared memory, and SFD directly. Frame 7.9.
__device__ __forceinline__ void store_subtile(Epilogue& e, Fusion& fusion, WorkTile work,
                                              u32 subtile, const Subtile& z) {
    const u32 buffer = e.storage.d_subtile(e.d_stage);
    if (e.issues_stores) tma_wait_group_read<D_STAGES - 1>();
    named_barrier_sync(EPILOGUE_BARRIER, EPILOGUE_THREADS);
    Output::write(e, work, subtile, z, buffer);
    walk(fusion, [&](auto& node) { node.postreduce(e, work, subtile); });
    smem_fence_proxy_async();
    named_barrier_sync(EPILOGUE_BARRIER, EPILOGUE_THREADS);
    if (e.issues_stores) {
        const bool elected = elect_sync() && e.is_inside(work);
#pragma unroll
        for (u32 box = 0; box < SUBTILE_BOXES; ++box) {
            const Coords3 corner = subtile_coords(work, subtile, box);
            tma_store(elected, e.storage.params.d, corner.x, corner.y, corner.z,
                      buffer + box * SUBTILE_BOX_ROWS * D_ROW_NBYTES);
        }
    }
    walk(fusion, [&](auto& node) { node.tma_store(e, work, subtile); });
    if (e.issues_stores) tma_commit_group();
    e.d_stage = e.d_stage + 1 == D_STAGES ? 0 : e.d_stage + 1;
}
