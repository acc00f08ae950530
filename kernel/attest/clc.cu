// clc: a grid of more CTAs than run at once; who takes over whom is open, that each is done once
// is not.
//
// Words: how often each CTA of the grid was done; then how many answers were out of the grid, how
// many answers had taken a CTA over (as 1 if any), and how many waits gave up.
#include "../hardware/clc.cuh"
#include "bounded_wait.cuh"

constexpr u32 RESPONSE = 16;  // from the shared base; the barrier is at 0

extern "C" __global__ void clc(u32* out) {
    if (!clc_starts()) return;
    const u32 all = gridDim.x * gridDim.y, base = smem_base();
    u32 number = blockIdx.y * gridDim.x + blockIdx.x, parity = 0;
    mbarrier_init(base, 1);
    mbarrier_fence_mbarrier_init();
    warp_sync();
#pragma unroll 1
    while (true) {
        if (lane_index() == 0) atomicAdd(&out[number], 1u);
        mbarrier_arrive_expect_tx(base, CLC_RESPONSE_NBYTES);
        clc_try_cancel(base + RESPONSE, base);
        if (!WAIT(base, parity)) {
            if (lane_index() == 0) atomicAdd(&out[all + 2], 1u);
            return;
        }
        parity ^= 1;
        ClcResponse answer;
        smem_ld(base + RESPONSE, answer.low, answer.high);
        smem_fence_proxy_async();
        if (!clc_is_canceled(answer)) return;
        const uint3 first = clc_get_first_ctaid(answer);
        if (first.x >= gridDim.x || first.y >= gridDim.y || first.z) {
            if (lane_index() == 0) atomicAdd(&out[all], 1u);
            return;
        }
        number = first.y * gridDim.x + first.x;
        if (lane_index() == 0) atomicMax(&out[all + 1], 1u);
        warp_sync();
    }
}
