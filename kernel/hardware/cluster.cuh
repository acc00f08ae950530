// Part 8. cluster: ranks, remote addresses, multicast masks, the cluster barrier.
//
// A shared::cluster address has the rank of its CTA in bits 24 and up.
#pragma once
#include "sm.cuh"

// The same offset in the CTA of `rank`.
__device__ __forceinline__ u32 cluster_mapa(u32 address, u32 rank) {
    u32 mapped;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(mapped) : "r"(address), "r"(rank));
    return mapped;
}

__device__ __forceinline__ void cluster_arrive() {
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}

// Until every thread of the cluster has arrived.
__device__ __forceinline__ void cluster_wait() {
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
