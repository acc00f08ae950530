// Part 5. producer_warp: the load warp fills mainloop stages by TMA.
//
// For each k-tile: wait until the stage is empty, expect its bytes, start four copies. The
// first stages of a tile are a prologue, after which the epilogue load warp may start.
#pragma once
#include "../hardware/tma.cuh"
#include "cleanup.cuh"
#include "shared_storage.cuh"

// Fill one stage. Frames 5.4.1 to 5.4.9.
__device__ __forceinline__ void load_k_tile(const SharedStorage& storage,
                                            Producer<MAINLOOP_STAGES>& mainloop, WorkTile work,
                                            u32 k_tile, u32 last) {
    const GemmParams& params = storage.params;
    const Stage stage = mainloop.acquire();  // 5.4.1
    mbarrier_arrive_expect_tx(stage.full, STAGE_TX_BYTES);  // 5.4.8
    if (k_tile + 1 < last) mainloop.peek();  // 5.4.2
    const bool elected = elect_sync();  // 5.4.3
    const u32 i = stage.index;
    const Coords3 a = a_coords(work, k_tile);  // 5.4.4
    tma_load(elected, params.a, a.x, a.y, a.z, storage.a(i), stage.full);
    const Coords3 b = b_coords(work, k_tile);  // 5.4.5
    tma_load(elected, params.b, b.x, b.y, b.z, storage.b(i), stage.full);
    const Coords4 sfa = sfa_coords(work, k_tile);  // 5.4.6
    tma_load(elected, params.sfa, sfa.x, sfa.y, sfa.z, sfa.w, storage.sfa(i), stage.full);
    const Coords4 sfb = sfb_coords(work, k_tile);  // 5.4.7
    tma_load(elected, params.sfb, sfb.x, sfb.y, sfb.z, sfb.w, storage.sfb(i), stage.full);
    // No commit: TMA's complete_tx ends the phase that expect_tx opened.
}

// Load k-tiles `first` to `last` - 1. Frames 5.3 to 5.6.
__device__ __forceinline__ void load(const SharedStorage& storage,
                                     Producer<MAINLOOP_STAGES>& mainloop, WorkTile work,
                                     u32 first, u32 last) {
    if (first < last) mainloop.peek();  // 5.3
#pragma unroll 1
    for (u32 k_tile = first; k_tile < last; ++k_tile)
        load_k_tile(storage, mainloop, work, k_tile, last);
}

// Load every tile that this CTA works on. Frame 5 ctx.
__device__ __forceinline__ void producer_warp(const SharedStorage& storage) {
    const GemmParams& params = storage.params;
    tma_prefetch_tensormap(params.a);
    tma_prefetch_tensormap(params.b);
    tma_prefetch_tensormap(params.sfa);
    tma_prefetch_tensormap(params.sfb);
    init_barriers(storage);
    clc_griddepcontrol_wait();
    TileScheduler scheduler = storage.tile_scheduler();
    Producer<MAINLOOP_STAGES> mainloop = {storage.mainloop()};
    Producer<CLC_STAGES> throttle = {storage.throttle()};
    WorkTile work = scheduler.initial_work();
    bool first = true;
    const u32 k_tiles = params.k_tiles();
    const u32 prologue = MAINLOOP_STAGES < k_tiles ? MAINLOOP_STAGES : k_tiles;  // 2.3
    while (work.valid) {
        if constexpr (SCHEDULER_IS_CLC) arrive_on_full(throttle.acquire());
        load(storage, mainloop, work, 0, prologue);
        if (LOADS_C && first) mbarrier_arrive(storage.load_order());
        first = false;
        load(storage, mainloop, work, prologue, k_tiles);  // 5.7
        work = scheduler.fetch_next_work();
    }
    load_tail(mainloop);
}
