// Part 7. epilogue_load_warp: loads C by subtiles, when beta is not 0.
#pragma once
#include "../hardware/tma.cuh"
#include "epilogue/subtile_order.cuh"
#include "parts.cuh"
#include "tiles/work_iterator.cuh"

// Load one subtile of C, and what nodes load with it.
__device__ __forceinline__ void load_subtile(const SharedStorage& storage, Fusion& fusion,
                                             Producer<C_STAGES>& c, WorkTile work, u32 subtile) {
    const Stage stage = c.acquire();
    const bool elected = elect_sync();
    mbarrier_expect_tx(stage.full, C_SUBTILE_NBYTES);
#pragma unroll
    for (u32 box = 0; box < C_BOXES; ++box) {
        const Coords3 corner = subtile_coords(work, subtile, box, C_BOX_N);
        tma_load(elected, storage.params.c, corner.x, corner.y, corner.z,
                 storage.c_subtile(stage.index) + box * SUBTILE_BOX_ROWS * C_BOX_ROW_NBYTES,
                 stage.full);
    }
    walk(fusion, [&](auto& node) { node.load_step(storage, work, subtile, stage); });
    arrive_on_full(stage);
}

// Fill the C ring for every tile that this CTA finishes.
//
// It starts after the mainloop's prologue, so that C does not delay the first k-tiles.
__device__ __forceinline__ void epilogue_load_warp(const SharedStorage& storage) {
    init_barriers(storage);
    Producer<C_STAGES> c = {storage.c()};
    WorkIterator work(storage);
    LoadOrder(storage).wait();
    const SplitK split_k = storage.params.split_k();
    u32 accumulator = 0;
    while (work.has_work()) {
        const WorkTile tile = work.next_prefetch();
        if (split_k.is_final_split(tile.split)) {
            Fusion fusion;
            walk(fusion, [&](auto& node) { node.load_begin(storage, tile); });
#pragma unroll 1
            for (u32 i = 0; i < SUBTILES; ++i)
                load_subtile(storage, fusion, c, tile, subtile_order(accumulator, i));
            walk(fusion, [&](auto& node) { node.load_end(storage, tile); });
        }
        if (SPLITS == 1 || split_k.k_tile_count(tile.split) > 0) accumulator ^= 1;
    }
    c.tail();
}
