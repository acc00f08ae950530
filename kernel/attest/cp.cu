// cp: tcgen05.cp of 32 rows of 16 bytes, twice; the second descriptor has a leading offset.
#include "rung.cuh"

extern "C" __global__ void cp(const u32* in, u32* out) {
    if (begins_as_unit()) return;
    const u32 tmem = smem_ld(tmem_pointer());
    load_image(in, 256);
    meet();
    if (warp_index() == 0) {
        const bool one = elect_sync();
        tcgen05_cp<1>(one, tmem, smem_descriptor(smem_base() + IMAGE, 0, 128, 0));
        tcgen05_cp<1>(one, tmem + 4, smem_descriptor(smem_base() + IMAGE + 512, 16, 128, 0));
        tcgen05_commit<1>(one, done_barrier());
    }
    if (WAIT(done_barrier(), 0)) {
        u32 words[8];
        tcgen05_fence_after_thread_sync();
        tmem_ld8(tmem + own_lanes(), words);
        for (u32 j = 0; j < 8; ++j) out[j / 4 * 4 * THREADS + threadIdx.x * 4 + j % 4] = words[j];
    }
    end();
}
