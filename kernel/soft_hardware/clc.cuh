// clc: the whole grid is launched, and a table says which clusters run and which are canceled.
//
// A CTA that finds its cluster canceled leaves at once. The host zeroes the table before each
// launch.
#pragma once
#include "../hardware/cluster.cuh"
#include "mbarrier.cuh"
#include "../hardware/smem.cuh"

constexpr u32 CLC_RESPONSE_NBYTES = 16;
constexpr u32 CLC_CLUSTERS = 1 << 16;
constexpr u32 CLC_RUNS = 1, CLC_CANCELED = 2;

__device__ u32 soft_clc_next;                   // the first cluster nobody has looked at
__device__ u32 soft_clc_clusters[CLC_CLUSTERS]; // 0, CLC_RUNS or CLC_CANCELED

struct ClcResponse {
    u64 low, high;
};

#define SOFT_SREG(name)                                      \
    __device__ __forceinline__ u32 sreg_##name() {           \
        u32 value;                                           \
        asm("mov.u32 %0, %%" #name ";" : "=r"(value));       \
        return value;                                        \
    }
#define SOFT_SREG_AXIS(name, axis)                           \
    __device__ __forceinline__ u32 name##_##axis() {         \
        u32 value;                                           \
        asm("mov.u32 %0, %%" #name "." #axis ";" : "=r"(value)); \
        return value;                                        \
    }
SOFT_SREG_AXIS(clusterid, x)
SOFT_SREG_AXIS(clusterid, y)
SOFT_SREG_AXIS(clusterid, z)
SOFT_SREG_AXIS(nclusterid, x)
SOFT_SREG_AXIS(nclusterid, y)
SOFT_SREG_AXIS(nclusterid, z)
SOFT_SREG_AXIS(cluster_nctaid, x)
SOFT_SREG_AXIS(cluster_nctaid, y)
SOFT_SREG(cluster_nctarank)

// Take cluster `number` for `state`; what it was before.
__device__ __forceinline__ u32 clc_claim(u32 number, u32 state) {
    if (number >= CLC_CLUSTERS) __trap();
    return atomicCAS(&soft_clc_clusters[number], 0u, state);
}

// Every warp of a cluster asks: whoever comes first claims it for all.
__device__ __forceinline__ bool clc_starts() {
    const u32 number =
        clusterid_x() + nclusterid_x() * (clusterid_y() + nclusterid_y() * clusterid_z());
    u32 before = 0;
    if (lane_index() == 0) before = clc_claim(number, CLC_RUNS);
    return __shfl_sync(0xffffffff, before, 0) != CLC_CANCELED;
}

// The next cluster that no SM has started: its first CTA, or a refusal.
__device__ __forceinline__ ClcResponse clc_cancel() {
    const u32 x = nclusterid_x(), y = nclusterid_y(), all = x * y * nclusterid_z();
    while (true) {
        const u32 number = atomicAdd(&soft_clc_next, 1u);
        if (number >= all) return {0, 0};
        if (clc_claim(number, CLC_CANCELED) != 0) continue;
        const u64 ctaid_x = number % x * cluster_nctaid_x();
        const u64 ctaid_y = number / x % y * cluster_nctaid_y();
        return {ctaid_y << 32 | ctaid_x, 1ull << 32 | number / (x * y)};
    }
}

// Write the answer, and credit its bytes to the barrier.
__device__ __forceinline__ void clc_answer(ClcResponse answer, u32 response, u32 mbar) {
    asm volatile("st.shared::cluster.v2.b64 [%0], {%1, %2};" ::"r"(response), "l"(answer.low),
                 "l"(answer.high)
                 : "memory");
    asm volatile("fence.acq_rel.cluster;" ::: "memory");
    asm volatile("mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [%0], %1;" ::"r"(mbar),
                 "r"(CLC_RESPONSE_NBYTES)
                 : "memory");
}

__device__ __forceinline__ void clc_try_cancel(u32 response, u32 mbar) {
    if (elect_sync()) clc_answer(clc_cancel(), response, mbar);
}

__device__ __forceinline__ void clc_try_cancel_multicast(u32 response, u32 mbar) {
    if (!elect_sync()) return;
    const ClcResponse answer = clc_cancel();
    for (u32 rank = 0; rank < sreg_cluster_nctarank(); ++rank)
        clc_answer(answer, cluster_mapa(response, rank), cluster_mapa(mbar, rank));
}

__device__ __forceinline__ bool clc_is_canceled(ClcResponse response) {
    return response.high >> 32 != 0;
}

__device__ __forceinline__ uint3 clc_get_first_ctaid(ClcResponse response) {
    return {static_cast<u32>(response.low), static_cast<u32>(response.low >> 32),
            static_cast<u32>(response.high)};
}

__device__ __forceinline__ void clc_griddepcontrol_wait() {
    asm volatile("griddepcontrol.wait;" ::: "memory");
}

__device__ __forceinline__ void clc_griddepcontrol_launch_dependents() {
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}
