// Parts 1 and 4. shared_storage: what the warps of one CTA share, by address.
//
// The rings of barriers, the stage buffers, the CLC responses and the word that receives the
// TMEM address.
#pragma once
#include "../hardware/named_barrier.cuh"
#include "config.cuh"
#include "partition.cuh"
#include "pipeline.cuh"

struct SharedStorage {
    const GemmParams& params;
    u32 base;

    __device__ __forceinline__ Ring<MAINLOOP_STAGES> mainloop() const {
        return {base + smem_map::MAINLOOP_FULL, base + smem_map::MAINLOOP_EMPTY};
    }
    __device__ __forceinline__ Ring<C_STAGES> c() const {
        return {base + smem_map::C_FULL, base + smem_map::C_EMPTY};
    }
    __device__ __forceinline__ Ring<CLC_STAGES> clc() const { return clc_ring(base); }
    __device__ __forceinline__ Ring<ACCUMULATOR_STAGES> accumulator() const {
        return {base + smem_map::ACCUMULATOR_FULL, base + smem_map::ACCUMULATOR_EMPTY};
    }
    __device__ __forceinline__ Ring<CLC_STAGES> throttle() const {
        return {base + smem_map::THROTTLE_FULL, base + smem_map::THROTTLE_EMPTY};
    }
    __device__ __forceinline__ u32 load_order() const { return base + smem_map::LOAD_ORDER; }
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
        return base + smem_map::C + stage * C_SUBTILE_NBYTES;
    }
    __device__ __forceinline__ u32 d_subtile(u32 stage) const {
        return base + smem_map::D + stage * D_SUBTILE_NBYTES;
    }

    __device__ __forceinline__ TileScheduler tile_scheduler() const {
        return TileScheduler(base, params.grid());
    }
};

// Initialise every barrier once, make it visible, and meet. Frame 1.4.
//
// Arrival counts, frames 1.2, 1.9 and 1.10: a mainloop stage becomes full by one
// arrive.expect_tx and its bytes, empty by one tcgen05.commit; an accumulator full by one
// commit, empty by 128 threads.
__device__ __forceinline__ void init_barriers(const SharedStorage& storage) {
    if (warp_index() == 0) {
        storage.mainloop().init(1, 1);
        if constexpr (LOADS_C) {
            storage.c().init(WARP_THREADS, EPILOGUE_THREADS);
            mbarrier_init(storage.load_order(), WARP_THREADS);
        }
        if constexpr (SCHEDULER_IS_CLC) {
            storage.clc().init(1, CLC_CONSUMERS);
            storage.throttle().init(WARP_THREADS, WARP_THREADS);
        }
        storage.accumulator().init(1, EPILOGUE_THREADS);
        mbarrier_fence_mbarrier_init();
    }
    named_barrier_sync(CTA_BARRIER, CTA_THREADS);
}
