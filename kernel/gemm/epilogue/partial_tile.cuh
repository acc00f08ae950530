// Part 7. partial_tile: an accumulator of split-K that is not the tile's last.
#pragma once
#include "collective.cuh"

// Add one accumulator to the tile's sum, for the next split to go on. An empty slice has no
// accumulator: nothing was multiplied, and nobody waits for it.
__device__ __forceinline__ void hand_on_tile(Epilogue& e, WorkTile work) {
    if (e.storage.params.split_k().k_tile_count(work.split) == 0) return;
    const Stage accumulator = wait_for_accumulator(e, work);
    const u32 number = consumed_accumulator(accumulator);
#pragma unroll 1
    for (u32 i = 0; i < SUBTILES; ++i) {
        Subtile acc;
        take_subtile(e, work, accumulator, number, i, acc);
        Fixup::store(e, work, subtile_order(number, i), acc);
    }
    Fixup::arrive(e, work);
}
