// Part 5. tma_loader: each k-tile of a stage by four TMA copies.
#pragma once
#include "../../hardware/tma.cuh"
#include "../shared_storage.cuh"

struct TmaLoader {
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

    // Tell the full barrier how many bytes will come. Frame 5.4.8.
    __device__ __forceinline__ void expect(Stage stage, u32 k_tiles) const {
        mbarrier_arrive_expect_tx(stage.full, k_tiles * K_TILE_TX_BYTES);
    }

    // Start the copies of the k-tiles of a stage. Frames 5.4.4 to 5.4.7.
    __device__ __forceinline__ void load(bool elected, Stage stage, WorkTile work, u32 k_tile,
                                         u32 tiles) const {
        for (u32 i = 0; i < tiles; ++i)
            load_one(elected, stage, stage.index * K_GROUP + i, work, k_tile + i);
    }

    // Start the copies of one k-tile into buffer `i`.
    __device__ __forceinline__ void load_one(bool elected, Stage stage, u32 i, WorkTile work,
                                             u32 k_tile) const {
        const GemmParams& params = storage.params;
        const Coords3 a = a_coords(work, k_tile);  // 5.4.4
        tma_load(elected, params.a, a.x, a.y, a.z, storage.a(i), stage.full);
        const Coords3 b = b_coords(work, k_tile);  // 5.4.5
        tma_load(elected, params.b, b.x, b.y, b.z, storage.b(i), stage.full);
        if constexpr (SF_ATOMS == 0) return;
        const Coords4 sfa = sfa_coords(work, k_tile);  // 5.4.6
        tma_load(elected, params.sfa, sfa.x, sfa.y, sfa.z, sfa.w, storage.sfa(i), stage.full);
        const Coords4 sfb = sfb_coords(work, k_tile);  // 5.4.7
        tma_load(elected, params.sfb, sfb.x, sfb.y, sfb.z, sfb.w, storage.sfb(i), stage.full);
    }
};
