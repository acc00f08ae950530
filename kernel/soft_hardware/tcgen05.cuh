// tcgen05: the operations go to a queue, which the tensor core's warp works off.
#pragma once
#include "../hardware/smem.cuh"
#include "tensor_core_queue.cuh"

constexpr u32 ROW_NBYTES = 32;  // bytes along K of A and of B in one MMA

template <u32 CTA_GROUP>
__device__ __forceinline__ void tcgen05_cp(bool elected, u32 taddr, u64 s_desc) {
    if (elected) enqueue<CTA_GROUP>({COPY, taddr, 0, 0, 0, 0, s_desc, 0, 0});
}

template <u32 CTA_GROUP, u32 SCALE_VEC>
__device__ __forceinline__ void tcgen05_mma(bool elected, u32 d, u64 a_desc, u64 b_desc,
                                            u32 idesc, u32 sfa, u32 sfb,
                                            bool enable_input_d) {
    if (elected)
        enqueue<CTA_GROUP>(
            {MULTIPLY, d, idesc, sfa, sfb, enable_input_d, a_desc, b_desc, SCALE_VEC});
}

// Without a mask: the barrier alone.
template <u32 CTA_GROUP>
__device__ __forceinline__ void tcgen05_commit(bool elected, u32 mbar) {
    if (elected) enqueue<CTA_GROUP>({COMMIT, mbar, 0, 0, 0, 0, 0, 0, 0});
}

// Instead of a mask: the own CTA alone.
struct OwnCta {};

template <u32 CTA_GROUP>
__device__ __forceinline__ void tcgen05_commit(bool elected, u32 mbar, OwnCta) {
    tcgen05_commit<CTA_GROUP>(elected, mbar);
}

template <u32 CTA_GROUP>
__device__ __forceinline__ void tcgen05_commit(bool elected, u32 mbar, u16 cta_mask) {
    if (elected) enqueue<CTA_GROUP>({COMMIT, mbar, cta_mask, 0, 0, 0, 0, 0, 0});
}

__device__ __forceinline__ void tcgen05_fence_before_thread_sync() {
    asm volatile("" ::: "memory");
}

__device__ __forceinline__ void tcgen05_fence_after_thread_sync() {
    asm volatile("" ::: "memory");
}
