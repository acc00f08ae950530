// Part 7. epilogue_load_warp: loads C by subtiles of 128 x 32, when beta is not 0.
#pragma once
#include "../hardware/tma.cuh"
#include "shared_storage.cuh"

// Fill the C ring for every tile; idle without C.
//
// It starts after the mainloop's prologue, so that C does not delay the first k-tiles.
__device__ __forceinline__ void epilogue_load_warp(const SharedStorage& storage) {
    init_barriers(storage);
    if constexpr (LOADS_C) {
        TileScheduler scheduler = storage.tile_scheduler();
        Producer<C_STAGES> c = {storage.c()};
        WorkTile work = scheduler.initial_work();
        mbarrier_try_wait(storage.load_order(), 0);
        while (work.valid) {
            const WorkTile next_work = scheduler.fetch_next_work();
#pragma unroll 1
            for (u32 subtile = 0; subtile < SUBTILES; ++subtile) {
                const Stage stage = c.acquire();
                const bool elected = elect_sync();
                mbarrier_expect_tx(stage.full, C_SUBTILE_NBYTES);
                const Coords3 corner = subtile_coords(work, subtile);
                tma_load(elected, storage.params.c, corner.x, corner.y, corner.z,
                         storage.c_subtile(stage.index), stage.full);
                arrive_on_full(stage);
            }
            work = next_work;
        }
        c.tail();
    }
}
