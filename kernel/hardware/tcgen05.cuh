// Part 6. tcgen05: scale copies, the block-scaled MMA, and commit.
//
// The elected lane issues. PTX promises, within one thread: an MMA comes after earlier copies
// and after earlier MMAs of the same accumulator, a commit after everything. A copy is NOT
// ordered after an earlier MMA.
#pragma once
#include "smem.cuh"

constexpr u32 ROW_NBYTES = 32;  // bytes along K of A and of B in one MMA

// CTA_GROUP: the SMs that execute it, 1 or 2; for a pair it is issued in the leader.

// 32 rows of 16 bytes to 4 columns; row r lands in lanes r, r + 32, r + 64, r + 96. Frame 6.6.4.
template <u32 CTA_GROUP>
__device__ __forceinline__ void tcgen05_cp(bool elected, u32 taddr, u64 s_desc) {
    asm volatile(
        "{\n\t"
        ".reg .pred p;\n\t"
        "setp.ne.b32 p, %2, 0;\n\t"
        "@p tcgen05.cp.cta_group::%3.32x128b.warpx4 [%0], %1;\n\t"
        "}" ::"r"(taddr),
        "l"(s_desc), "r"(static_cast<u32>(elected)), "n"(CTA_GROUP)
        : "memory");
}

// D = (A * SFA) * (B * SFB) + D; without enable_input_d, D starts at +0. SCALE_VEC: scales of a
// row. Frame 6.6.9.
template <u32 CTA_GROUP, u32 SCALE_VEC>
__device__ __forceinline__ void tcgen05_mma(bool elected, u32 d, u64 a_desc, u64 b_desc,
                                            u32 idesc, u32 sfa, u32 sfb,
                                            bool enable_input_d) {
    asm volatile(
        "{\n\t"
        ".reg .pred p, accumulate;\n\t"
        "setp.ne.b32 p, %7, 0;\n\t"
        "setp.ne.b32 accumulate, %6, 0;\n\t"
        "@p tcgen05.mma.cta_group::%8.kind::mxf4nvf4.block_scale.scale_vec::%9X"
        " [%0], %1, %2, %3, [%4], [%5], accumulate;\n\t"
        "}" ::"r"(d),
        "l"(a_desc), "l"(b_desc), "r"(idesc), "r"(sfa), "r"(sfb),
        "r"(static_cast<u32>(enable_input_d)), "r"(static_cast<u32>(elected)), "n"(CTA_GROUP),
        "n"(SCALE_VEC)
        : "memory");
}

// One arrival when all earlier cp and mma of this thread are complete. Frames 6.7 and 6.10.
template <u32 CTA_GROUP>
__device__ __forceinline__ void tcgen05_commit(bool elected, u32 mbar) {
    asm volatile(
        "{\n\t"
        ".reg .pred p;\n\t"
        "setp.ne.b32 p, %1, 0;\n\t"
        "@p tcgen05.commit.cta_group::%2.mbarrier::arrive::one.shared::cluster.b64 [%0];\n\t"
        "}" ::"r"(mbar),
        "r"(static_cast<u32>(elected)), "n"(CTA_GROUP)
        : "memory");
}

// Instead of a mask: the own CTA alone.
struct OwnCta {};

template <u32 CTA_GROUP>
__device__ __forceinline__ void tcgen05_commit(bool elected, u32 mbar, OwnCta) {
    tcgen05_commit<CTA_GROUP>(elected, mbar);
}

// The same at the same offset of every CTA of the mask.
template <u32 CTA_GROUP>
__device__ __forceinline__ void tcgen05_commit(bool elected, u32 mbar, u16 cta_mask) {
    asm volatile(
        "{\n\t"
        ".reg .pred p;\n\t"
        "setp.ne.b32 p, %2, 0;\n\t"
        "@p tcgen05.commit.cta_group::%3.mbarrier::arrive::one.shared::cluster"
        ".multicast::cluster.b64 [%0], %1;\n\t"
        "}" ::"r"(mbar),
        "h"(cta_mask), "r"(static_cast<u32>(elected)), "n"(CTA_GROUP)
        : "memory");
}

// No instruction: tcgen05 work before it and the synchronisation after it keep their order.
__device__ __forceinline__ void tcgen05_fence_before_thread_sync() {
    asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
}

__device__ __forceinline__ void tcgen05_fence_after_thread_sync() {
    asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
}
