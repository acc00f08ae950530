// rung: what the rungs with a tensor core share. Four warps; a soft tensor core has more.
#pragma once
#include "../hardware/mma_mxf8f6f4.cuh"
#include "../hardware/mma_unscaled.cuh"
#include "../hardware/named_barrier.cuh"
#include "../hardware/tcgen05.cuh"
#include "../hardware/tensor_core.cuh"
#include "bounded_wait.cuh"
#include "tmem_words.cuh"

constexpr u32 THREADS = 128;
constexpr u32 COLUMNS = 64;  // of TMEM, for the whole rung
// From the CTA's shared base: the barriers, at 256 TMEM's address, at 512 what a soft tensor core
// has, and the operands.
constexpr u32 IMAGE = 1024;

__device__ __forceinline__ u32 done_barrier() { return smem_base(); }
__device__ __forceinline__ u32 tmem_pointer() { return smem_base() + 256; }

__device__ __forceinline__ void meet() { named_barrier_sync(1, THREADS); }

// The four warps meet with TMEM allocated and a barrier that awaits one arrival. True in a warp
// of the unit, which has then done all that it was asked for.
__device__ __forceinline__ bool begins_as_unit() {
    if (warp_index() >= THREADS / 32) {
        tensor_core<false, 1>();
        return true;
    }
    if (warp_index() == 0) {
        mbarrier_init(done_barrier(), 1);
        mbarrier_fence_mbarrier_init();
        tmem_alloc<1>(tmem_pointer(), COLUMNS);
        tmem_relinquish_alloc_permit<1>();
    }
    meet();
    return false;
}

__device__ __forceinline__ void end() {
    tcgen05_fence_before_thread_sync();
    meet();
    if (warp_index() == 0) tmem_dealloc<1>(smem_ld(tmem_pointer()), COLUMNS);
}

// Words of global memory to the image, where the tensor core may read them.
__device__ __forceinline__ void load_image(const u32* from, u32 words) {
    for (u32 i = threadIdx.x; i < words; i += THREADS)
        asm volatile("st.shared.b32 [%0], %1;" ::"r"(smem_base() + IMAGE + 4 * i), "r"(from[i])
                     : "memory");
    smem_fence_proxy_async();
}

__device__ __forceinline__ u32 own_lanes() { return tmem_address(warp_index() * 32, 0); }
