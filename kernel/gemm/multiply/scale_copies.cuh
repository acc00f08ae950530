// Part 6. scale_copies: the scales of a stage, from shared memory to TMEM.
#pragma once
#include "../../hardware/tcgen05.cuh"
#include "../descriptors.cuh"
#include "../shared_storage.cuh"

// TMEM addresses of one scale buffer.
struct ScaleColumns {
    u32 sfa, sfb;
};

// The stage whose commit frees the first buffer. Before the first stage these are the last ones of
// a round that never was, which parity 1 takes as done.
constexpr PipelineState FIRST_REUSED = {MAINLOOP_STAGES - SCALE_BUFFERS, 1};

struct ScaleCopies {
    const SharedStorage& storage;
    u32 taddr;
    u32 buffer = 0;  // for the next stage
    PipelineState reused = FIRST_REUSED;  // its commit frees that buffer: SCALE_BUFFERS ago

    // Wait until a buffer's last MMAs are complete. Frame 6.6.4.
    //
    // PTX orders no copy after an earlier MMA. Their commit is the one that gave back their
    // stage, so this waits on that stage's empty barrier. With one buffer (CUTLASS's way)
    // nothing is waited for.
    __device__ __forceinline__ void acquire() {
        if constexpr (SF_ATOMS > 0 && SCALE_BUFFERS > 1) {
            const u32 empty = storage.mainloop().empty + MBARRIER_NBYTES * reused.index;
            mbarrier_try_wait<IN_CLUSTER>(empty, reused.phase);
            reused.advance<MAINLOOP_STAGES>();
        }
    }

    // Copy SFA and SFB of the i-th k-tile of a stage. Frame 6.6.4.
    __device__ __forceinline__ ScaleColumns copy(bool elected, const BufferDescriptors& from,
                                                 u32 i) const {
        const u32 at = (buffer * K_GROUP + i) * tmem_map::K_TILE;
        const u32 sfa = taddr + tmem_map::SFA + at;
        const u32 sfb = taddr + tmem_map::SFB + at;
#pragma unroll
        for (u32 along_k = 0; along_k < SF_ATOMS; ++along_k)
            tcgen05_cp<CTA_GROUP>(elected, sfa + along_k * SFA_COLUMNS, from.sfa[along_k]);
#pragma unroll
        for (u32 along_k = 0; along_k < SF_ATOMS; ++along_k)
#pragma unroll
            for (u32 block = 0; block < SFB_BLOCKS; ++block)
                tcgen05_cp<CTA_GROUP>(elected, sfb + along_k * SFB_COLUMNS + block * SF_COLUMNS,
                           from.sfb[block][along_k]);
        return {sfa, sfb};
    }

    // Go to the next buffer.
    __device__ __forceinline__ void advance() {
        if constexpr (SCALE_BUFFERS > 1) buffer ^= 1;
    }
};
