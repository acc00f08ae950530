// Parts 1 and 4. shared_storage: what the warps of one CTA share, by address.
//
// The rings of barriers, the stage buffers, the CLC responses and the word that receives the
// TMEM address.
#pragma once
#include "../hardware/named_barrier.cuh"
#include "cta_in_cluster.cuh"
#include "partition.cuh"
#include "plan.cuh"

struct SharedStorage : Buffers {
    const GemmParams& params;
    CtaInCluster cta = {};
};

// Initialise every barrier once, make it visible, and meet. Frame 1.4.
__device__ __forceinline__ void init_barriers(const SharedStorage& storage) {
    if (warp_index() == 0) {
        storage.init();
        mbarrier_fence_mbarrier_init();
    }
    if constexpr (IN_CLUSTER) {
        cluster_arrive();
        cluster_wait();
    } else {
        named_barrier_sync(CTA_BARRIER, CTA_THREADS);
    }
}
