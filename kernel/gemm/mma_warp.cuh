// Part 6. mma_warp: copies scales to TMEM, issues the MMAs, commits.
//
// One thread issues everything. A mainloop stage is given back by a tcgen05.commit, which
// arrives when the MMAs have read it; another commit after the last k-tile hands the
// accumulator to the epilogue.
#pragma once
#include "../hardware/tcgen05.cuh"
#include "../hardware/tmem.cuh"
#include "../layout/tmem_scales.cuh"
#include "cleanup.cuh"
#include "descriptors.cuh"
#include "shared_storage.cuh"

// The MMA warp's registers.
struct Mma {
    const SharedStorage& storage;
    u32 taddr;
    Consumer<MAINLOOP_STAGES> mainloop;
    Producer<ACCUMULATOR_STAGES> accumulator;
    u32 idesc;
    u32 buffer = 0;  // of scales, for the next k-tile
    // The stage whose commit frees that buffer: SCALE_BUFFERS k-tiles ago. Before the first
    // k-tile these are the last stages of a round that never was, which parity 1 takes as done.
    PipelineState reused = {MAINLOOP_STAGES - SCALE_BUFFERS, 1};
};

// consumer_release: the stage is empty when its MMAs are done. Frame 6.7.
__device__ __forceinline__ void release_stage(bool elected, Stage stage) {
    tcgen05_commit(elected, stage.empty);
}

// producer_commit: hand the accumulator to the epilogue. Frame 6.10.
__device__ __forceinline__ void commit_accumulator(bool elected, Stage stage) {
    tcgen05_commit(elected, stage.full);
}

// Copy SFA and SFB of one stage into a scale buffer. Frame 6.6.4.
//
// The buffer's last MMAs must be complete: PTX orders no copy after an earlier MMA. Their
// commit is the one that gave back the stage of that k-tile, so this waits on that stage's
// empty barrier. With one buffer (CUTLASS's way) nothing is waited for.
__device__ __forceinline__ void copy_scales(Mma& mma, bool elected,
                                            const StageDescriptors& stage) {
    const SharedStorage& storage = mma.storage;
    if constexpr (SCALE_BUFFERS > 1) {
        const u32 empty = storage.mainloop().empty + MBARRIER_NBYTES * mma.reused.index;
        mbarrier_try_wait(empty, mma.reused.phase);
        mma.reused.advance<MAINLOOP_STAGES>();
    }
    const u32 sfa = mma.taddr + tmem_map::SFA + mma.buffer * tmem_map::BUFFER;
    const u32 sfb = mma.taddr + tmem_map::SFB + mma.buffer * tmem_map::BUFFER;
#pragma unroll
    for (u32 k_block = 0; k_block < K_BLOCKS; ++k_block)
        tcgen05_cp(elected, sfa + k_block * SFA_COLUMNS, stage.sfa[k_block]);
#pragma unroll
    for (u32 k_block = 0; k_block < K_BLOCKS; ++k_block)
        tcgen05_cp(elected, sfb + k_block * SFB_COLUMNS, stage.sfb[k_block]);
}

// Wait for one stage, use it, give it back. Frames 6.6.2 to 6.7.
__device__ __forceinline__ void multiply_k_tile(Mma& mma, WorkTile work, Stage accumulator,
                                                u32 k_tile, u32 k_tiles) {
    const SharedStorage& storage = mma.storage;
    const Stage stage = mma.mainloop.wait();  // 6.6.2
    if (k_tile + 1 < k_tiles) mma.mainloop.peek();  // 6.6.3
    const bool elected = elect_sync();
    const StageDescriptors descriptors = DESCRIPTORS.stages[stage.index];
    copy_scales(mma, elected, descriptors);  // 6.6.4
    const u32 d = mma.taddr + accumulator.index * TILE_N;
    const u32 sfa = mma.taddr + tmem_map::SFA + mma.buffer * tmem_map::BUFFER;
    const u32 sfb = mma.taddr + tmem_map::SFB + mma.buffer * tmem_map::BUFFER +
                    sfb_column_shift(TILE_N, work.n);
#pragma unroll
    for (u32 k_block = 0; k_block < K_BLOCKS; ++k_block)  // 6.6.5 to 6.6.12
        tcgen05_mma(elected, d, descriptors.a[k_block], descriptors.b[k_block], mma.idesc,
                    sfa + k_block * SFA_COLUMNS, sfb + k_block * SFB_COLUMNS,
                    k_tile > 0 || k_block > 0);
    if constexpr (SCALE_BUFFERS > 1) mma.buffer ^= 1;
    release_stage(elected, stage);
}

// Accumulate all k-tiles of one tile. Frames 6.4 to 6.10.
__device__ __forceinline__ void multiply_tile(Mma& mma, WorkTile work, u32 k_tiles) {
    mma.mainloop.peek();  // 6.4
    const Stage accumulator = mma.accumulator.acquire();  // 6.6.1
    tcgen05_fence_after_thread_sync();
#pragma unroll 2  // with two scale buffers, each half knows its own
    for (u32 k_tile = 0; k_tile < k_tiles; ++k_tile)
        multiply_k_tile(mma, work, accumulator, k_tile, k_tiles);
    commit_accumulator(elect_sync(), accumulator);
}

// Allocate TMEM, multiply every tile of this CTA, free TMEM. Frame 6 ctx.
__device__ __forceinline__ void mma_warp(const SharedStorage& storage) {
    init_barriers(storage);
    tmem_alloc(storage.tmem_pointer(), TMEM_COLUMNS);  // 4.2
    named_barrier_arrive(TMEM_ALLOCATION_BARRIER, WARP_THREADS + EPILOGUE_THREADS);
    const u32 taddr = smem_ld(storage.tmem_pointer());
    Mma mma = {storage,
               taddr,
               {storage.mainloop()},
               {storage.accumulator()},
               config_idesc(storage.params.scale_type)};
    TileScheduler scheduler = storage.tile_scheduler();
    WorkTile work = scheduler.initial_work();
    const u32 k_tiles = storage.params.k_tiles();
    while (work.valid) {
        const WorkTile next_work = scheduler.fetch_next_work();
        multiply_tile(mma, work, k_tiles);
        work = next_work;
    }
    mma_tail(mma.accumulator, taddr);
}
