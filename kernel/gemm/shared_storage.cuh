// Parts 1 and 4. shared_storage: what the warps of one CTA share, by address.
//
// The rings of barriers, the stage buffers, the CLC responses and the word that receives the
// TMEM address.
#pragma once
#include "../hardware/named_barrier.cuh"
#include "plan.cuh"
#include "partition.cuh"
#include "pipeline.cuh"

struct SharedStorage : Rings {
    const GemmParams& params;

    __device__ __forceinline__ u32 tmem_pointer() const { return base + smem_map::TMEM_POINTER; }

    __device__ __forceinline__ u32 a(u32 stage) const {
        return base + smem_map::A + stage * A_NBYTES;
    }
    __device__ __forceinline__ u32 b(u32 stage) const {
        return base + smem_map::B + stage * B_NBYTES;
    }
    __device__ __forceinline__ u32 sfa(u32 stage) const {
        return base + smem_map::SFA + stage * SFA_NBYTES;
    }
    __device__ __forceinline__ u32 sfb(u32 stage) const {
        return base + smem_map::SFB + stage * SFB_NBYTES;
    }
    __device__ __forceinline__ u32 c_subtile(u32 stage) const {
        return base + smem_map::C_SUBTILE + stage * C_SUBTILE_NBYTES;
    }
    __device__ __forceinline__ u32 d_subtile(u32 stage) const {
        return base + smem_map::D_SUBTILE + stage * D_SUBTILE_NBYTES;
    }

    __device__ __forceinline__ TileScheduler tile_scheduler() const {
        return TileScheduler(base, params.grid());
    }
};

// Initialise every barrier once, make it visible, and meet. Frame 1.4.
__device__ __forceinline__ void init_barriers(const SharedStorage& storage) {
    if (warp_index() == 0) {
        storage.init();
        mbarrier_fence_mbarrier_init();
    }
    named_barrier_sync(CTA_BARRIER, CTA_THREADS);
}
