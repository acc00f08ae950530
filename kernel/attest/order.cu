// order: sixteen MMAs in a row with no wait between, on one set of scales and on sixteen.
//
// The image: A, B, scales of B, and sixteen scales of A. D of the first chain is in columns 0 to 7,
// of the second, in which each MMA's scales are written over those of the MMA before, in 8 to 15.
#include "rung.cuh"

constexpr u32 LINKS = 16, A_NBYTES = 4096, B_NBYTES = 256, SCALES_NBYTES = 512;
constexpr u32 IMAGE_WORDS = (A_NBYTES + B_NBYTES + (1 + LINKS) * SCALES_NBYTES) / 4;
constexpr u32 SFA = 32, SFB = 36;

__device__ __forceinline__ u64 scales(u32 number) {
    const u32 at = IMAGE + A_NBYTES + B_NBYTES + number * SCALES_NBYTES;
    return smem_descriptor(smem_base() + at, 0, 128, 0);
}

__device__ __forceinline__ void chain(u32 tmem, u32 d, u32 idesc, bool alternates) {
    const u64 a = smem_descriptor(smem_base() + IMAGE, 128, 256, 0);
    const u64 b = smem_descriptor(smem_base() + IMAGE + A_NBYTES, 128, 256, 0);
    const bool one = elect_sync();
    tcgen05_cp<1>(one, tmem + SFB, scales(0));
    tcgen05_cp<1>(one, tmem + SFA, scales(1));
#pragma unroll 1
    for (u32 i = 0; i < LINKS; ++i) {
        if (alternates && i) tcgen05_cp<1>(one, tmem + SFA, scales(1 + i));
        tcgen05_mma<1, 4>(one, tmem + d, a, b, idesc, tmem + SFA, tmem + SFB, i != 0);
    }
    tcgen05_commit<1>(one, done_barrier());
}

extern "C" __global__ void order(const u32* in, u32 idesc, u32* out) {
    if (begins_as_unit()) return;
    const u32 tmem = smem_ld(tmem_pointer());
    load_image(in, IMAGE_WORDS);
    meet();
    for (u32 half = 0; half < 2; ++half) {
        if (warp_index() == 0) chain(tmem, 8 * half, idesc, half);
        if (!WAIT(done_barrier(), half)) break;
        u32 words[8];
        tcgen05_fence_after_thread_sync();
        tmem_ld8(tmem + own_lanes() + 8 * half, words);
        for (u32 j = 0; j < 8; ++j) out[(half * THREADS + threadIdx.x) * 8 + j] = words[j];
        tcgen05_fence_before_thread_sync();
        meet();
        tcgen05_fence_after_thread_sync();
    }
    end();
}
