// commit: how many arrivals a commit makes, and whether those of one thread come in order.
//
// Words: a commit of nothing arrives; of two awaited arrivals one commit makes one, the next the
// other; then eight times: the barrier of an earlier commit, once that of a later one is complete.
#include "rung.cuh"

constexpr u32 TWO = 8, FIRST = 64;  // bytes from the shared base

// A test may be false once though the phase is complete.
__device__ __forceinline__ bool is_complete(u32 mbar) {
    u32 done = 0;
#pragma unroll 1
    for (u32 i = 0; i < 4; ++i) done |= mbarrier_test_wait(mbar, 0);
    return done;
}

extern "C" __global__ void commit(const u32* in, u32* out) {
    if (begins_as_unit()) return;
    const u32 tmem = smem_ld(tmem_pointer()), base = smem_base();
    load_image(in, 128);
    if (warp_index() == 0) {
        mbarrier_init(base + TWO, 2);
        for (u32 i = 0; i < 16; ++i) mbarrier_init(base + FIRST + 8 * i, 1);
        mbarrier_fence_mbarrier_init();
    }
    meet();
    if (warp_index() == 0) {
        const bool one = elect_sync();
        const u64 rows = smem_descriptor(base + IMAGE, 0, 128, 0);
        u32 words[11];
        tcgen05_commit<1>(one, done_barrier());
        words[0] = WAIT(done_barrier(), 0);
        tcgen05_commit<1>(one, base + TWO);
        tcgen05_commit<1>(one, done_barrier());
        words[1] = WAIT(done_barrier(), 1) && mbarrier_test_wait(base + TWO, 0);  // not yet
        tcgen05_commit<1>(one, base + TWO);
        words[2] = WAIT(base + TWO, 0);
#pragma unroll
        for (u32 i = 0; i < 8; ++i) {
            tcgen05_cp<1>(one, tmem + 4 * i, rows);
            tcgen05_commit<1>(one, base + FIRST + 16 * i);
            tcgen05_commit<1>(one, base + FIRST + 16 * i + 8);
            const bool later = WAIT(base + FIRST + 16 * i + 8, 0);
            words[3 + i] = later && is_complete(base + FIRST + 16 * i);
        }
        if (lane_index() == 0)
            for (u32 i = 0; i < 11; ++i) out[i] = words[i];
    }
    end();
}
