// mma: one MMA of M = 128 and N = 8 for each case, of any kind, with C from TMEM.
//
// A case is its words (kind, instruction descriptor, whether C is added, one word to spare, and
// the upper halves of both matrix descriptors), A, B, the scales of both, and C row by row.
#include "rung.cuh"

enum : u32 { NVFP4, MXF4NVF4_2X, MXF4, MXF8F6F4, F16, F8F6F4 };

constexpr u32 HEAD = 8, A = 1024, B = 64, SCALES = 128, C = 1024;  // in words
constexpr u32 IMAGE_WORDS = A + B + 2 * SCALES, CASE = HEAD + IMAGE_WORDS + C;
constexpr u32 LEADING = 128;
constexpr u32 SFA = 32, SFB = 36;  // columns

__device__ __forceinline__ u64 descriptor(u32 offset, u32 high) {
    const u32 address = smem_base() + IMAGE + offset;
    return static_cast<u64>(high) << 32 | (address & 0x3ffff) >> 4 | LEADING >> 4 << 16;
}

#ifdef ATTEST_SOFT
#define mma_mxf4 tcgen05_mma<1, 2>
#else
__device__ __forceinline__ void mma_mxf4(bool elected, u32 d, u64 a_desc, u64 b_desc, u32 idesc,
                                         u32 sfa, u32 sfb, bool enable_input_d) {
    if (elected)
        asm volatile(
            "{\n\t"
            ".reg .pred accumulate;\n\t"
            "setp.ne.b32 accumulate, %6, 0;\n\t"
            "tcgen05.mma.cta_group::1.kind::mxf4.block_scale.scale_vec::2X"
            " [%0], %1, %2, %3, [%4], [%5], accumulate;\n\t"
            "}" ::"r"(d),
            "l"(a_desc), "l"(b_desc), "r"(idesc), "r"(sfa), "r"(sfb),
            "r"(static_cast<u32>(enable_input_d))
            : "memory");
}
#endif

__device__ __forceinline__ void multiply(const u32* head, u32 tmem) {
    const u64 a = descriptor(0, head[4]), b = descriptor(4 * A, head[5]);
    const u64 scales = smem_descriptor(smem_base() + IMAGE + 4 * (A + B), 0, 128, 0);
    const u32 kind = head[0], idesc = head[1], sfa = tmem + SFA, sfb = tmem + SFB;
    const bool input_d = head[2], one = elect_sync();
    tcgen05_cp<1>(one, sfa, scales);
    tcgen05_cp<1>(one, sfb, scales + 4 * SCALES / 16);
    if (kind == NVFP4) tcgen05_mma<1, 4>(one, tmem, a, b, idesc, sfa, sfb, input_d);
    if (kind == MXF4NVF4_2X) tcgen05_mma<1, 2>(one, tmem, a, b, idesc, sfa, sfb, input_d);
    if (kind == MXF4) mma_mxf4(one, tmem, a, b, idesc, sfa, sfb, input_d);
    if (kind == MXF8F6F4) mma_mxf8f6f4_mma<1>(one, tmem, a, b, idesc, sfa, sfb, input_d);
    if (kind == F16) mma_unscaled_mma<1, true>(one, tmem, a, b, idesc, input_d);
    if (kind == F8F6F4) mma_unscaled_mma<1, false>(one, tmem, a, b, idesc, input_d);
    tcgen05_commit<1>(one, done_barrier());
}

extern "C" __global__ void mma(const u32* cases, u32 count, u32* out) {
    if (begins_as_unit()) return;
    const u32 tmem = smem_ld(tmem_pointer());
    u32 words[8];
    for (u32 i = 0; i < count; ++i) {
        const u32* each = cases + i * CASE;
        const u32* c = each + HEAD + IMAGE_WORDS + threadIdx.x * 8;
        load_image(each + HEAD, IMAGE_WORDS);
        for (u32 j = 0; j < 8; ++j) words[j] = c[j];
        tmem_st8(tmem + own_lanes(), words);
        tcgen05_fence_before_thread_sync();
        meet();
        tcgen05_fence_after_thread_sync();
        if (warp_index() == 0) multiply(each, tmem);
        if (!WAIT(done_barrier(), i & 1)) break;
        tcgen05_fence_after_thread_sync();
        tmem_ld8(tmem + own_lanes(), words);
        for (u32 j = 0; j < 8; ++j) out[(i * THREADS + threadIdx.x) * 8 + j] = words[j];
        tcgen05_fence_before_thread_sync();
        meet();
        tcgen05_fence_after_thread_sync();
    }
    end();
}
