// Part 7. tile_writer: D through shared memory, by TMA.
#pragma once
#include "../../hardware/tma.cuh"
#include "../parts.cuh"

// Write one subtile of D through shared memory, and SFD directly. Frame 7.9.
__device__ __forceinline__ void store_subtile(Epilogue& e, WorkTile work, u32 subtile,
                                              const Subtile& z) {
    const u32 buffer = e.storage.d_subtile(e.d_stage);
    if (e.issues_stores) tma_wait_group_read<D_STAGES - 1>();
    named_barrier_sync(EPILOGUE_BARRIER, EPILOGUE_THREADS);
    Output::write(e, work, subtile, z, buffer);
    smem_fence_proxy_async();
    named_barrier_sync(EPILOGUE_BARRIER, EPILOGUE_THREADS);
    if (e.issues_stores) {
#pragma unroll
        for (u32 part = 0; part < COLUMN_PARTS; ++part) {
            const Coords3 corner = subtile_coords(work, subtile, part);
            tma_store(elect_sync(), e.storage.params.d, corner.x, corner.y, corner.z,
                      buffer + part * TILE_M * D_ROW_NBYTES);
        }
        tma_commit_group();
    }
    e.d_stage = e.d_stage + 1 == D_STAGES ? 0 : e.d_stage + 1;
}
