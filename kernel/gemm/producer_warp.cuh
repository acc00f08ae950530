// Part 5. producer_warp: the load warp fills mainloop stages by TMA.
//
// For each stage: wait until it is empty, expect its bytes, start four copies for each of its
// k-tiles. The first stages of a tile are a prologue, after which the epilogue load warp may
// start.
//
// CUTLASS's scheduler and epilogue load warps wait for earlier grids too. Here the load warp
// alone does: the others touch global memory only behind its loads or its signals.
#pragma once
#include "cleanup.cuh"
#include "tiles/work_iterator.cuh"

// Fill one stage, the last one of a tile perhaps in part. Frames 5.4.1 to 5.4.9.
__device__ __forceinline__ void load_k_tile(const Loader& loader,
                                            Producer<MAINLOOP_STAGES>& mainloop, WorkTile work,
                                            u32 k_tile, u32 last) {
    const u32 tiles = group_size(k_tile, last);
    const Stage stage = mainloop.acquire();  // 5.4.1
    loader.expect(stage, tiles);  // 5.4.8
    if (k_tile + tiles < last) mainloop.peek();  // 5.4.2
    const bool elected = elect_sync();  // 5.4.3
    loader.load(elected, stage, work, k_tile, tiles);
    // No commit: TMA's complete_tx ends the phase that expect_tx opened.
}

// Load k-tiles `first` to `last` - 1. Frames 5.3 to 5.6.
__device__ __forceinline__ void load(const Loader& loader, Producer<MAINLOOP_STAGES>& mainloop,
                                     WorkTile work, u32 first, u32 last) {
    if (first < last) mainloop.peek();  // 5.3
#pragma unroll 1
    for (u32 k_tile = first; k_tile < last; k_tile += K_GROUP)
        load_k_tile(loader, mainloop, work, k_tile, last);
}

// Load every tile that this CTA works on. Frame 5 ctx.
__device__ __forceinline__ void producer_warp(const SharedStorage& storage) {
    const Loader loader = {storage};
    loader.prefetch();
    init_barriers(storage);
    clc_griddepcontrol_wait();
    WorkIterator work(storage);
    Producer<MAINLOOP_STAGES> mainloop = {storage.mainloop()};
    Throttle throttle(storage);
    const SplitK split_k = storage.params.split_k();
    const u32 staged = MAINLOOP_STAGES * K_GROUP;
    LoadOrderBarrier load_order(storage);
    while (work.has_work()) {
        throttle.signal();
        const u32 first = split_k.k_idx(work.tile.split);
        const u32 count = split_k.k_tile_count(work.tile.split);  // 2.3
        const u32 prologue = staged < count ? staged : count;
        load(loader, mainloop, work.tile, first, first + prologue);
        load_order.arrive();
        load(loader, mainloop, work.tile, first + prologue, first + count);  // 5.7
        work.next();
    }
    load_tail(mainloop);
}
