// Part 5. prefetching_producer_warp: the load warp, which finds the next tile ahead.
//
// Where the next tile is only reckoned, it may be found before this one is loaded: then nothing
// stands between the last load of a tile and the first of the next.
#pragma once
#include "producer_warp.cuh"

// Load every tile that this CTA works on. Frame 5 ctx.
__device__ __forceinline__ void prefetching_producer_warp(const SharedStorage& storage) {
    const Loader loader = {storage};
    loader.prefetch();
    init_barriers(storage);
    clc_griddepcontrol_wait();
    WorkIterator work(storage);
    Producer<MAINLOOP_STAGES> mainloop = {storage.mainloop()};
    const SplitK split_k = storage.params.split_k();
    const u32 staged = MAINLOOP_STAGES * K_GROUP;
    LoadOrderBarrier load_order(storage);
    while (work.has_work()) {
        const WorkTile tile = work.next_prefetch();
        const u32 first = split_k.k_idx(tile.split);
        const u32 count = split_k.k_tile_count(tile.split);  // 2.3
        const u32 prologue = staged < count ? staged : count;
        load(loader, mainloop, tile, first, first + prologue);
        load_order.arrive();
        load(loader, mainloop, tile, first + prologue, first + count);  // 5.7
    }
    load_tail(mainloop);
}
