// Part 6. mma_warp: copies scales to TMEM, issues the MMAs, commits.
//
// One thread issues everything. A mainloop stage is given back by a tcgen05.commit, which
// arrives when the MMAs have read it; another commit after the last k-tile hands the
// accumulator to the epilogue.
//
// After two rounds of the ring stage, phase and scale buffer are what they were. Two are therefore
// written out: in them each place is a constant, and with it are barriers, phases, TMEM columns and
// the address of every descriptor, so that nothing is computed. A tile begins where the last one
// ended: its k-tiles before and after such rounds are used one stage at a time, by the same text.
#pragma once
#include "../hardware/tmem.cuh"
#include "cleanup.cuh"
#include "tiles/work_iterator.cuh"

// The MMA warp's registers.
struct Mma {
    Consumer<MAINLOOP_STAGES> mainloop;
    Producer<ACCUMULATOR_BARRIERS> accumulator;
    ScaleCopies scale_copies;
    Multiplier multiplier;
};

// consumer_release: the stage is empty when its MMAs are done. Frame 6.7.
__device__ __forceinline__ void release_stage(bool elected, Stage stage) {
    tcgen05_commit<CTA_GROUP>(elected, stage.empty, CtaInCluster().releases());
}

// producer_commit: hand the accumulator to the epilogue. Frame 6.10.
__device__ __forceinline__ void commit_accumulator(bool elected, Stage stage) {
    tcgen05_commit<CTA_GROUP>(elected, stage.full, CtaInCluster().pair());
}

// Wait for one stage, use its k-tiles, give it back. Frames 6.6.2 to 6.7.
__device__ __forceinline__ void multiply_k_tile(Mma& mma, WorkTile work, Stage accumulator,
                                                u32 tiles, bool accumulate, bool peeks) {
    const Stage stage = mma.mainloop.wait();  // 6.6.2
    if (peeks) mma.mainloop.peek();           // 6.6.3
    const bool elected = elect_sync();
    for (u32 i = 0; i < tiles; ++i) {
        const BufferDescriptors& buffer = DESCRIPTORS.buffers[stage.index * K_GROUP + i];
        if (i == 0) mma.scale_copies.acquire();  // 6.6.4
        const ScaleColumns scales = mma.scale_copies.copy(elected, buffer, i);
#pragma unroll
        for (u32 k_block = 0; k_block < K_BLOCKS; ++k_block)  // 6.6.5
            mma.multiplier.issue(elected, accumulator, buffer, scales, work, k_block,
                                 accumulate || i > 0 || k_block > 0);
    }
    mma.scale_copies.advance();
    release_stage(elected, stage);
}

// Whether a whole round starts here and ends within the tile.
__device__ __forceinline__ bool has_round(const Mma& mma, u32 left) {
    return ROUND_STAGES && (mma.mainloop.state.index | mma.mainloop.state.phase) == 0 &&
           left >= ROUND_K_TILES;
}

// A round begins with what the kernel began with: nothing changes, but the compiler knows it. Only
// what a peek has answered is forgotten.
__device__ __forceinline__ void begin_round(Mma& mma) {
    mma.mainloop.state = {0, 0};
    mma.mainloop.token = 0;
    mma.scale_copies.buffer = 0;
    mma.scale_copies.reused = FIRST_REUSED;
}

// Use the k-tiles of whole rounds; returns the one after them.
__device__ __forceinline__ u32 multiply_rounds(Mma& mma, WorkTile work, Stage accumulator,
                                               u32 k_tile, u32 k_tiles) {
    do {
        begin_round(mma);
#pragma unroll
        for (u32 stage = 0; stage < ROUND_STAGES; ++stage)
            multiply_k_tile(mma, work, accumulator, K_GROUP, k_tile > 0 || stage > 0, false);
        k_tile += ROUND_K_TILES;
    } while (k_tiles - k_tile >= ROUND_K_TILES);
    return k_tile;
}

// Accumulate all k-tiles of one work unit. Frames 6.4 to 6.10.
__device__ __forceinline__ void multiply_tile(Mma& mma, WorkTile work, u32 k_tiles) {
    mma.mainloop.peek();  // 6.4
    const Stage accumulator = mma.accumulator.acquire();  // 6.6.1
    tcgen05_fence_after_thread_sync();
#pragma unroll(ROUND_STAGES ? 1 : 2)  // rolled: with two scale buffers, each half knows its own
    for (u32 k_tile = 0; k_tile < k_tiles;) {
        if (has_round(mma, k_tiles - k_tile)) {
            k_tile = multiply_rounds(mma, work, accumulator, k_tile, k_tiles);
        } else {
            const u32 tiles = group_size(k_tile, k_tiles);
            multiply_k_tile(mma, work, accumulator, tiles, k_tile > 0, k_tile + tiles < k_tiles);
            k_tile += K_GROUP;
        }
    }
    commit_accumulator(elect_sync(), accumulator);
}

// Allocate TMEM, multiply every tile of this CTA, free TMEM. Frame 6 ctx.
__device__ __forceinline__ void mma_warp(const SharedStorage& storage) {
    init_barriers(storage);
    const Allocator allocator = {storage};
    allocator.alloc(storage.tmem_pointer(), TMEM_COLUMNS);  // 4.2
    named_barrier_arrive(TMEM_ALLOCATION_BARRIER, WARP_THREADS + EPILOGUE_THREADS);
    const u32 taddr = smem_ld(storage.tmem_pointer());
    Mma mma = {
        {storage.mainloop()}, {storage.accumulator()}, {storage, taddr}, {storage, taddr}};
    WorkIterator work(storage);
    const SplitK split_k = storage.params.split_k();
    while (work.has_work()) {
        const WorkTile tile = work.next_prefetch();
        const u32 k_tiles = split_k.k_tile_count(tile.split);
        if (storage.cta.leads() && (SPLITS == 1 || k_tiles > 0)) multiply_tile(mma, tile, k_tiles);
    }
    mma_tail(mma.accumulator, taddr, allocator);
}
