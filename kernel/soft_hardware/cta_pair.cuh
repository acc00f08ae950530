// cta_pair: the two CTAs of a pair, of consecutive ranks; the even one leads.
#pragma once
#include "../hardware/cluster.cuh"
#include "../hardware/smem.cuh"

__device__ __forceinline__ u32 cluster_ctarank() {
    u32 rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

template <u32 CTA_GROUP>
__device__ __forceinline__ bool leads_pair() {
    return CTA_GROUP == 1 || cluster_ctarank() % 2 == 0;
}

// The same address in the leader or, with `part` 1, in its peer.
template <u32 CTA_GROUP>
__device__ __forceinline__ u32 in_pair(u32 address, u32 part) {
    if constexpr (CTA_GROUP == 1) return address;
    return cluster_mapa(address, (cluster_ctarank() & ~1u) + part);
}

__device__ __forceinline__ void shared_st(u32 address, u32 word) {
    asm volatile("st.shared.b32 [%0], %1;" ::"r"(address), "r"(word) : "memory");
}

// Write a word of the leader or, with `part` 1, of its peer.
template <u32 CTA_GROUP>
__device__ __forceinline__ void pair_st(u32 address, u32 part, u32 word) {
    if constexpr (CTA_GROUP == 1)
        shared_st(address, word);
    else
        asm volatile("st.shared::cluster.b32 [%0], %1;" ::"r"(in_pair<2>(address, part)),
                     "r"(word)
                     : "memory");
}

// Read 16 bytes of the leader or of its peer.
template <u32 CTA_GROUP>
__device__ __forceinline__ void pair_ld(u32 address, u32 part, u32x4& v) {
    if constexpr (CTA_GROUP == 1)
        smem_ld(address, v);
    else
        asm volatile("ld.shared::cluster.v4.b32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                     : "r"(in_pair<2>(address, part))
                     : "memory");
}

// What was read in both CTAs may be overwritten by TMA.
__device__ __forceinline__ void pair_fence_proxy_async() {
    asm volatile("fence.proxy.async;" ::: "memory");
}
