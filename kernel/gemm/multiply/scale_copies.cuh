// Part 6. scale_copies: the scales of a stage, from shared memory to TMEM.
#pragma once
#include "../../hardware/tcgen05.cuh"
#include "../descriptors.cuh"
#include "../shared_storage.cuh"

// TMEM addresses of one scale buffer.
struct ScaleColumns {
    u32 sfa, sfb;
};

struct ScaleCopies {
    const SharedStorage& storage;
    u32 taddr;
    u32 buffer = 0;  // for the next k-tile
    // The stage whose commit frees that buffer: SCALE_BUFFERS k-tiles ago. Before the first
    // k-tile these are the last stages of a round that never was, which parity 1 takes as done.
    PipelineState reused = {MAINLOOP_STAGES - SCALE_BUFFERS, 1};

    // Copy SFA and SFB of one stage into a scale buffer. Frame 6.6.4.
    //
    // The buffer's last MMAs must be complete: PTX orders no copy after an earlier MMA. Their
    // commit is the one that gave back the stage of that k-tile, so this waits on that stage's
    // empty barrier. With one buffer (CUTLASS's way) nothing is waited for.
    __device__ __forceinline__ ScaleColumns copy(bool elected, const StageDescriptors& stage) {
        if constexpr (SCALE_BUFFERS > 1) {
            const u32 empty = storage.mainloop().empty + MBARRIER_NBYTES * reused.index;
            mbarrier_try_wait(empty, reused.phase);
            reused.advance<MAINLOOP_STAGES>();
        }
        const u32 sfa = taddr + tmem_map::SFA + buffer * tmem_map::BUFFER;
        const u32 sfb = taddr + tmem_map::SFB + buffer * tmem_map::BUFFER;
#pragma unroll
        for (u32 k_block = 0; k_block < K_BLOCKS; ++k_block)
            tcgen05_cp(elected, sfa + k_block * SFA_COLUMNS, stage.sfa[k_block]);
#pragma unroll
        for (u32 k_block = 0; k_block < K_BLOCKS; ++k_block)
#pragma unroll
            for (u32 block = 0; block < SFB_BLOCKS; ++block)
                tcgen05_cp(elected, sfb + k_block * SFB_COLUMNS + block * SF_COLUMNS,
                           stage.sfb[block][k_block]);
        if constexpr (SCALE_BUFFERS > 1) buffer ^= 1;
        return {sfa, sfb};
    }
};
