// cp_shapes: the shapes of tcgen05.cp that are not for scales, each to 8 columns.
#include "rung.cuh"

#define CP(number, shape)                                                               \
    if (one)                                                                            \
        asm volatile("tcgen05.cp.cta_group::1." shape " [%0], %1;" ::"r"(tmem + 8 * number), \
                     "l"(desc)                                                          \
                     : "memory")

extern "C" __global__ void cp_shapes(const u32* in, u32* out) {
    if (begins_as_unit()) return;
    const u32 tmem = smem_ld(tmem_pointer());
    u32 words[8];
    for (u32 j = 0; j < 8; ++j) words[j] = 0xEEEEEEEE;
    for (u32 i = 0; i < 5; ++i) tmem_st8(tmem + own_lanes() + 8 * i, words);
    load_image(in, 1024);
    tcgen05_fence_before_thread_sync();
    meet();
    tcgen05_fence_after_thread_sync();
    if (warp_index() == 0) {
        const bool one = elect_sync();
        const u64 desc = smem_descriptor(smem_base() + IMAGE, 128, 256, 0);
        CP(0, "128x256b");
        CP(1, "4x256b");
        CP(2, "128x128b");
        CP(3, "64x128b.warpx2::02_13");
        CP(4, "64x128b.warpx2::01_23");
        tcgen05_commit<1>(one, done_barrier());
    }
    if (WAIT(done_barrier(), 0)) {
        tcgen05_fence_after_thread_sync();
        for (u32 i = 0; i < 5; ++i) {
            tmem_ld8(tmem + own_lanes() + 8 * i, words);
            for (u32 j = 0; j < 8; ++j) out[(i * THREADS + threadIdx.x) * 8 + j] = words[j];
        }
    }
    end();
}
