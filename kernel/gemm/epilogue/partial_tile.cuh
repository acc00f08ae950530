// Part 7. partial_tile: an accumulator of split-K that is not the tile's last.
#pragma once
#include "collective.cuh"

// Add one accumulator to the tile's sum, for the next split to go on. An empty slice has no
// accumulator: nothing was multiplied, and nobody waits for it.
__device__ __forceinline__ void hand_on_tile(Epilogue& e, WorkTile work) {
    if (e.storage.params.split_k().k_tile_count(work.split) == 0) return;
    const Stage accumulator = e.accumulator.wait();
    tcgen05_fence_after_thread_sync();
    const u32 number = consumed_accumulator(accumulator);
    Fixup::wait(e, work);
#pragma unroll 1
    for (u32 i = 0; i < SUBTILES; ++i) {
        const u32 subtile = subtile_order(number, i);
        Subtile acc;
        load_accumulator(e, number, subtile, acc);
        if (i == SUBTILES_TO_RELEASE - 1) {
            tcgen05_fence_before_thread_sync();
            arrive_on_empty(accumulator);
        }
        Fixup::load_add(e, work, subtile, acc);
        Fixup::store(e, work, subtile, acc);
    }
    Fixup::arrive(e, work);
}
