// Part 1. cta_in_cluster: where a CTA is in its cluster, and who shares its data.
//
// Rank = m + CLUSTER_M * n. The CTAs of one row have the same m and share A and SFA; those of
// one column have the same n and share B and SFB. A pair is two CTAs of a column whose m differ
// in the last bit: each has half of B, and the even one leads.
#pragma once
#include "../hardware/cluster.cuh"
#include "../hardware/tcgen05.cuh"
#include "plan.cuh"

// The ring for a consumer that gives its stages back to the CTA of `rank`.
template <u32 STAGES>
__device__ __forceinline__ Ring<STAGES> released_in(u32 rank, Ring<STAGES> ring) {
    if constexpr (IN_CLUSTER) ring.empty = cluster_mapa(ring.empty, rank);
    return ring;
}

// Every n-th bit of a mask.
__device__ constexpr u32 every_nth(u32 n, u32 bits) {
    u32 mask = 0;
    for (u32 i = 0; i < bits; i += n) mask |= 1u << i;
    return mask;
}

struct CtaInCluster {
    u32 m, n;  // 0 and 0 without a cluster, which the compiler knows

    __device__ __forceinline__ CtaInCluster()
        : m(blockIdx.x % CLUSTER_M), n(blockIdx.y % CLUSTER_N) {}

    __device__ __forceinline__ u32 rank() const { return m + CLUSTER_M * n; }

    // Whether this CTA asks for the tiles of the cluster.
    __device__ __forceinline__ bool is_first() const { return !IN_CLUSTER || rank() == 0; }

    // Which half of B: 0 in the leader, 1 in its peer; 0 without pairs.
    __device__ __forceinline__ u32 part_of_pair() const { return m % CTA_GROUP; }

    // Whether this CTA issues the MMAs: the leader of a pair, or every CTA.
    __device__ __forceinline__ bool leads() const {
        return CTA_GROUP == 1 || part_of_pair() == 0;
    }

    __device__ __forceinline__ u32 leader() const { return rank() - part_of_pair(); }
    __device__ __forceinline__ u32 peer() const { return rank() ^ 1; }

    // CTAs that share A and SFA, as a mask.
    __device__ __forceinline__ u16 row() const { return ROW << m; }

    // CTAs that share SFB, as a mask.
    __device__ __forceinline__ u16 column() const { return COLUMN << (CLUSTER_M * n); }

    // CTAs that share B: of a column those with the same half, as a mask.
    __device__ __forceinline__ u16 same_b() const {
        return SAME_B << (part_of_pair() + CLUSTER_M * n);
    }

    // The CTAs of this MMA, as a mask.
    __device__ __forceinline__ auto pair() const {
        if constexpr (IN_CLUSTER)
            return static_cast<u16>(((1 << CTA_GROUP) - 1) << leader());
        else
            return OwnCta{};
    }

    // CTAs to which a stage is given back, as a mask: all that sent to it.
    __device__ __forceinline__ auto releases() const {
        if constexpr (IN_CLUSTER)
            return static_cast<u16>(ROWS << (m - part_of_pair()) | column());
        else
            return OwnCta{};
    }

    // Which part this CTA sends: of A and SFA, of B, of SFB.
    __device__ __forceinline__ u32 nth_of_row() const { return n; }
    __device__ __forceinline__ u32 nth_of_same_b() const { return m / CTA_GROUP; }
    __device__ __forceinline__ u32 nth_of_column() const { return m; }

private:
    static constexpr u32 ROW = every_nth(CLUSTER_M, CLUSTER_SIZE);
    static constexpr u32 ROWS = ROW | ROW << (CTA_GROUP - 1);
    static constexpr u32 COLUMN = (1u << CLUSTER_M) - 1;
    static constexpr u32 SAME_B = every_nth(CTA_GROUP, CLUSTER_M);
};
