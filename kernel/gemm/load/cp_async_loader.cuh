// Part 5. cp_async_loader: A and B by the load warp's threads, the scales by TMA.
//
// TMA takes rows whose pitch is a multiple of 16 bytes, which a K of an odd number of 16-element
// blocks has not. A thread of cp.async copies 8 bytes, puts them where TMA's 128-byte swizzle
// would, and reads nothing for what lies outside the operand, which becomes 0. The stage is full
// when TMA's bytes are there and each thread has arrived, which it does when its copies are
// complete.
#pragma once
#include "../../hardware/cp_async.cuh"
#include "../../hardware/smem.cuh"
#include "../../hardware/tma.cuh"
#include "../../layout/swizzle.cuh"
#include "../shared_storage.cuh"

struct CpAsyncLoader {
    static constexpr u32 COPY_NBYTES = 8;   // a whole number in a row of 16-element blocks
    static constexpr u32 ROW_NBYTES = 128;  // of a k-tile
    static constexpr u32 COPIES_PER_ROW = ROW_NBYTES / COPY_NBYTES;
    static constexpr u32 ROWS_AT_A_TIME = WARP_THREADS / COPIES_PER_ROW;

    const SharedStorage& storage;

    // Fetch the tensor maps ahead of their first use.
    __device__ __forceinline__ void prefetch() const {
        tma_prefetch_tensormap(storage.params.sfa);
        tma_prefetch_tensormap(storage.params.sfb);
    }

    // Tell the full barrier how many bytes of scales will come. Frame 5.4.8.
    __device__ __forceinline__ void expect(Stage stage, u32 k_tiles) const {
        mbarrier_arrive_expect_tx(stage.full, k_tiles * K_TILE_TX_BYTES);
    }

    // Start the copies of the k-tiles of a stage. Frames 5.4.4 to 5.4.7.
    //
    // The fence orders them after the MMAs that have read the stage, through the async proxy.
    __device__ __forceinline__ void load(bool elected, Stage stage, WorkTile work, u32 k_tile,
                                         u32 tiles) const {
        smem_fence_proxy_async();
        for (u32 i = 0; i < tiles; ++i)
            load_one(elected, stage, stage.index * K_GROUP + i, work, k_tile + i);
        cp_async_mbarrier_arrive_noinc(stage.full);
    }

    // Start the copies of one k-tile into buffer `i`.
    __device__ __forceinline__ void load_one(bool elected, Stage stage, u32 i, WorkTile work,
                                             u32 k_tile) const {
        const GemmParams& params = storage.params;
        const Coords4 sfa = sfa_coords(work, k_tile);  // 5.4.6
        tma_load(elected, params.sfa, sfa.x, sfa.y, sfa.z, sfa.w, storage.sfa(i), stage.full);
        const Coords4 sfb = sfb_coords(work, k_tile);  // 5.4.7
        tma_load(elected, params.sfb, sfb.x, sfb.y, sfb.z, sfb.w, storage.sfb(i), stage.full);
        copy<TILE_M>(params.a_address, params.m, work.l, work.m, k_tile, storage.a(i));  // 5.4.4
        copy<TILE_N>(params.b_address, params.n, work.l, work.n, k_tile, storage.b(i));  // 5.4.5
    }

    // Copy the rows of a k-tile; those from `end`, and bytes beyond K, are 0.
    template <u32 ROWS>
    __device__ __forceinline__ void copy(u64 operand, u32 end, u32 batch, u32 tile, u32 k_tile,
                                         u32 to) const {
        const u32 pitch = storage.params.k / 2;
        const u32 column = lane_index() % COPIES_PER_ROW * COPY_NBYTES;
        const u32 byte = k_tile * ROW_NBYTES + column;
#pragma unroll 4
        for (u32 first = 0; first < ROWS; first += ROWS_AT_A_TIME) {
            const u32 row = first + lane_index() / COPIES_PER_ROW;
            const u32 at = tile * ROWS + row;
            const bool inside = at < end && byte < pitch;
            const u64 source = (static_cast<u64>(batch) * end + at) * pitch + byte;
            cp_async_copy<COPY_NBYTES>(
                to + swizzled_offset<ROW_NBYTES>(row, column / 16) + column % 16,
                operand + (inside ? source : 0), inside ? COPY_NBYTES : 0);
        }
    }
};
