// Part 6. mma_warp: copies scales to TMEM, issues the MMAs, commits.
//
// One thread issues everything. A mainloop stage is given back by a tcgen05.commit, which
// arrives when the MMAs have read it; another commit after the last k-tile hands the
// accumulator to the epilogue.
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
                                                u32 k_tile, u32 k_tiles) {
    const u32 tiles = group_size(k_tile, k_tiles);
    const Stage stage = mma.mainloop.wait();  // 6.6.2
    if (k_tile + tiles < k_tiles) mma.mainloop.peek();  // 6.6.3
    const bool elected = elect_sync();
    for (u32 i = 0; i < tiles; ++i) {
        const BufferDescriptors buffer = DESCRIPTORS.buffers[stage.index * K_GROUP + i];
        if (i == 0) mma.scale_copies.acquire();  // 6.6.4
        const ScaleColumns scales = mma.scale_copies.copy(elected, buffer, i);
#pragma unroll
        for (u32 k_block = 0; k_block < K_BLOCKS; ++k_block)  // 6.6.5
            mma.multiplier.issue(elected, accumulator, buffer, scales, work, k_block,
                                 k_tile + i > 0 || k_block > 0);
    }
    mma.scale_copies.advance();
    release_stage(elected, stage);
}

// Accumulate all k-tiles of one work unit. Frames 6.4 to 6.10.
__device__ __forceinline__ void multiply_tile(Mma& mma, WorkTile work, u32 k_tiles) {
    mma.mainloop.peek();  // 6.4
    const Stage accumulator = mma.accumulator.acquire();  // 6.6.1
    tcgen05_fence_after_thread_sync();
#pragma unroll 2  // with two scale buffers, each half knows its own
    for (u32 k_tile = 0; k_tile < k_tiles; k_tile += K_GROUP)
        multiply_k_tile(mma, work, accumulator, k_tile, k_tiles);
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
