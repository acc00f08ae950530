// Part 5. multicast_loader: each CTA of a cluster loads a part and sends it to all.
//
// The CTAs of a row share A and SFA, those of a column B and SFB. A part of an operand is some of
// its rows, a part of the scales some of their atoms along K, or a piece of one: it lies in one
// piece in every receiver. The bytes that a pair receives are counted on the barrier of its
// leader, which alone expects them.
#pragma once
#include "../../hardware/tma.cuh"
#include "../shared_storage.cuh"

struct MulticastLoader {
    const SharedStorage& storage;

    // Fetch the tensor maps ahead of their first use.
    __device__ __forceinline__ void prefetch() const {
        const GemmParams& params = storage.params;
        tma_prefetch_tensormap(params.a);
        tma_prefetch_tensormap(params.b);
        if constexpr (SF_ATOMS > 0) {
            tma_prefetch_tensormap(params.sfa);
            tma_prefetch_tensormap(params.sfb);
        }
    }

    // Tell the leader's full barrier how many bytes will come. Frame 5.4.8.
    __device__ __forceinline__ void expect(Stage stage, u32 k_tiles) const {
        if (storage.cta.leads())
            mbarrier_arrive_expect_tx<true, CTA_GROUP>(stage.full, k_tiles * K_TILE_TX_BYTES);
    }

    // Start the copies of the k-tiles of a stage. Frames 5.4.4 to 5.4.7.
    __device__ __forceinline__ void load(bool elected, Stage stage, WorkTile work, u32 k_tile,
                                         u32 tiles) const {
        const u32 full = cluster_mapa(stage.full, storage.cta.leader());
        for (u32 i = 0; i < tiles; ++i)
            load_one(elected, full, stage.index * K_GROUP + i, work, k_tile + i);
    }

    // Start the copies of one k-tile into buffer `i`.
    __device__ __forceinline__ void load_one(bool elected, u32 full, u32 i, WorkTile work,
                                             u32 k_tile) const {
        const GemmParams& params = storage.params;
        const CtaInCluster& cta = storage.cta;
        const u32 of_row = cta.nth_of_row(), of_b = cta.nth_of_same_b();
        const u32 of_column = cta.nth_of_column();
        const Coords3 a = a_coords(work, k_tile);  // 5.4.4
        tma_load_multicast<CTA_GROUP>(elected, params.a, a.x, a.y + of_row * (TILE_M / A_PARTS),
                                      a.z, storage.a(i) + of_row * (A_NBYTES / A_PARTS), full,
                                      cta.row());
        const Coords3 b = b_coords(work, k_tile, cta.part_of_pair());  // 5.4.5
        tma_load_multicast<CTA_GROUP>(elected, params.b, b.x, b.y + of_b * (B_ROWS / B_PARTS),
                                      b.z, storage.b(i) + of_b * (B_NBYTES / B_PARTS), full,
                                      cta.same_b());
        if constexpr (SF_ATOMS > 0) {
            const Coords4 sfa =
                part_coords<A_PARTS, SFA_BLOCKS>(sfa_coords(work, k_tile), of_row);  // 5.4.6
            tma_load_multicast<CTA_GROUP>(elected, params.sfa, sfa.x, sfa.y, sfa.z, sfa.w,
                                          storage.sfa(i) + of_row * (SFA_NBYTES / A_PARTS), full,
                                          cta.row());
            const Coords4 sfb =
                part_coords<SFB_PARTS, SFB_BLOCKS>(sfb_coords(work, k_tile), of_column);  // 5.4.7
            tma_load_multicast<CTA_GROUP>(elected, params.sfb, sfb.x, sfb.y, sfb.z, sfb.w,
                                          storage.sfb(i) + of_column * (SFB_NBYTES / SFB_PARTS),
                                          full, cta.column());
        }
    }
};
