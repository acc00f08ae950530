// Part 6. unrolled_mma_warp: the MMA warp, two rounds of its ring written out.
//
// After two rounds stage, phase and scale buffer are what they were. So the place of a k-tile in
// them is a constant, and with it are barriers, phases, TMEM columns and the address of every
// descriptor: nothing is computed. A tile begins where the last one ended; its k-tiles up to the
// next double round, and those after the last one, go the way of mma_warp.
#pragma once
#include "mma_warp.cuh"

constexpr u32 ROUND = 2 * MAINLOOP_STAGES;
static_assert(K_GROUP == 1);

// The compiler may not know their values: it would make each of two moves, where a load is one.
__constant__ Descriptors ROUND_DESCRIPTORS = all_descriptors();

// The k-tile at a place of a round. Frames 6.6.2 to 6.7.
__device__ __forceinline__ void multiply_at(u32 place, const Mma& mma, WorkTile work,
                                            Stage accumulator, bool accumulate) {
    const PipelineState now = {place % MAINLOOP_STAGES, place / MAINLOOP_STAGES};
    const u32 before = (place + ROUND - SCALE_BUFFERS) % ROUND;
    const PipelineState reused = {before % MAINLOOP_STAGES, before / MAINLOOP_STAGES};
    const Stage stage = mma.mainloop.stage(now);
    mbarrier_try_wait<IN_CLUSTER>(stage.full, stage.phase);  // 6.6.2
    const bool elected = elect_sync();
    const BufferDescriptors& buffer = ROUND_DESCRIPTORS.buffers[stage.index];
    ScaleCopies copies = {mma.scale_copies.storage, mma.scale_copies.taddr, place % SCALE_BUFFERS,
                          reused};
    copies.acquire();  // 6.6.4
    const ScaleColumns scales = copies.copy(elected, buffer, 0);
#pragma unroll
    for (u32 k_block = 0; k_block < K_BLOCKS; ++k_block)  // 6.6.5
        mma.multiplier.issue(elected, accumulator, buffer, scales, work, k_block,
                             accumulate || k_block > 0);
    release_stage(elected, stage);
}

// The k-tiles of a round: each place is a constant.
__device__ __forceinline__ void multiply_round(const Mma& mma, WorkTile work, Stage accumulator,
                                               bool accumulate) {
#pragma unroll
    for (u32 place = 0; place < ROUND; ++place)
        multiply_at(place, mma, work, accumulator, accumulate || place > 0);
}

// Whether a round starts here and ends within the tile.
__device__ __forceinline__ bool has_round(const Mma& mma, u32 left) {
    return (mma.mainloop.state.index | mma.mainloop.state.phase) == 0 && left >= ROUND;
}

// Accumulate all k-tiles of one work unit. Frames 6.4 to 6.10.
__device__ __forceinline__ void multiply_in_rounds(Mma& mma, WorkTile work, u32 k_tiles) {
    mma.mainloop.peek();  // 6.4
    const Stage accumulator = mma.accumulator.acquire();  // 6.6.1
    tcgen05_fence_after_thread_sync();
    u32 k_tile = 0;
    while (k_tile < k_tiles) {
        if (has_round(mma, k_tiles - k_tile)) {
            mma.mainloop.token = 0;  // of a peek, which a round does not ask for
            do {
                multiply_round(mma, work, accumulator, k_tile > 0);
                k_tile += ROUND;
            } while (k_tiles - k_tile >= ROUND);
        } else {
            multiply_k_tile(mma, work, accumulator, k_tile, k_tiles);
            k_tile += 1;
        }
    }
    commit_accumulator(elect_sync(), accumulator);
}

// Allocate TMEM, multiply every tile of this CTA, free TMEM. Frame 6 ctx.
__device__ __forceinline__ void unrolled_mma_warp(const SharedStorage& storage) {
    init_barriers(storage);
    const Allocator allocator = {storage};
    allocator.alloc(storage.tmem_pointer(), TMEM_COLUMNS);
    named_barrier_arrive(TMEM_ALLOCATION_BARRIER, WARP_THREADS + EPILOGUE_THREADS);
    const u32 taddr = smem_ld(storage.tmem_pointer());
    Mma mma = {
        {storage.mainloop()}, {storage.accumulator()}, {storage, taddr}, {storage, taddr}};
    WorkIterator work(storage);
    const SplitK split_k = storage.params.split_k();
    while (work.has_work()) {
        const WorkTile tile = work.next_prefetch();
        const u32 k_tiles = split_k.k_tile_count(tile.split);
        if (storage.cta.leads() && (SPLITS == 1 || k_tiles > 0))
            multiply_in_rounds(mma, tile, k_tiles);
    }
    mma_tail(mma.accumulator, taddr, allocator);
}
