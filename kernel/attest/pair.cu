// pair: one MMA of a CTA pair, M = 256, N = 16; each CTA shows its half of D.
//
// A CTA's image: its 128 rows of A, its 8 rows of B, the scales of its rows of A, those of all B.
#include "../hardware/cluster.cuh"
#include "rung.cuh"

constexpr u32 IMAGE_WORDS = 1024 + 64 + 256, A_NBYTES = 4096, B_NBYTES = 256;
constexpr u32 SFA = 32, SFB = 36;

__device__ __forceinline__ u32 peer_barrier() { return smem_base() + 8; }  // 32 lanes of the peer

// Every warp of both CTAs, a soft tensor core's too, with the barriers that threads of the other
// CTA signal.
__device__ __forceinline__ void begin_pair() {
    if (warp_index() == 0) {
        mbarrier_init(done_barrier(), 1);
        mbarrier_init(peer_barrier(), 32);
        mbarrier_fence_mbarrier_init();
    }
    cluster_arrive();
    cluster_wait();
}

// The four warps of both CTAs.
__device__ __forceinline__ void meet_peer(u32 parity) {
    meet();
    if (warp_index() == 0) {
        mbarrier_arrive<true>(cluster_mapa(peer_barrier(), blockIdx.x ^ 1));
        bounded_wait<true>(peer_barrier(), parity, __LINE__);
    }
    meet();
}

__device__ __forceinline__ void multiply(u32 tmem, u32 idesc) {
    const u32 image = smem_base() + IMAGE;
    const u64 scales = smem_descriptor(image + A_NBYTES + B_NBYTES, 0, 128, 0);
    const bool one = elect_sync();
    tcgen05_cp<2>(one, tmem + SFA, scales);
    tcgen05_cp<2>(one, tmem + SFB, scales + 512 / 16);
    tcgen05_mma<2, 4>(one, tmem, smem_descriptor(image, 128, 256, 0),
                      smem_descriptor(image + A_NBYTES, 128, 256, 0), idesc, tmem + SFA,
                      tmem + SFB, false);
    tcgen05_commit<2>(one, done_barrier(), static_cast<u16>(3));
}

extern "C" __global__ void pair(const u32* in, u32 idesc, u32* out) {
    if (warp_index() >= THREADS / 32) return tensor_core<true, 2>();
    begin_pair();
    if (warp_index() == 0) {
        tmem_alloc<2>(tmem_pointer(), COLUMNS);
        tmem_relinquish_alloc_permit<2>();
    }
    load_image(in + blockIdx.x * IMAGE_WORDS, IMAGE_WORDS);
    meet_peer(0);
    const u32 tmem = smem_ld(tmem_pointer());
    if (blockIdx.x == 0 && warp_index() == 0) multiply(tmem, idesc);
    if (bounded_wait<true>(done_barrier(), 0, __LINE__)) {
        u32 words[8];
        tcgen05_fence_after_thread_sync();
        for (u32 half = 0; half < 2; ++half) {
            tmem_ld8(tmem + own_lanes() + 8 * half, words);
            u32* to = out + (blockIdx.x * THREADS + threadIdx.x) * 16 + 8 * half;
            for (u32 j = 0; j < 8; ++j) to[j] = words[j];
        }
    }
    tcgen05_fence_before_thread_sync();
    meet_peer(1);
    if (warp_index() == 0) tmem_dealloc<2>(tmem, COLUMNS);
}
