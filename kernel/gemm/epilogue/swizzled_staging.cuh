// swizzled_staging: two panels of swizzled rows, stored by two tensor copies.
//
// A box with the 128-byte swizzle has rows of 128 bytes at most, 64 columns of BF16: a half is
// two of them.
#pragma once
#include "../../hardware/smem.cuh"
#include "../../hardware/tma.cuh"
#include "../../layout/swizzle.cuh"
#include "store_group.cuh"

template <u32 ROW_NBYTES>
struct SwizzledStaging {
    static constexpr u32 PANEL = WARP_THREADS * PANEL_NBYTES;

    // The copies of this half's last rows have read them, and every lane may know.
    static __device__ __forceinline__ void acquire(const Epilogue&) {
        tma_wait_group_read<PENDING_HALVES>();
        warp_sync();
    }

    // Write subtile i of a half, each thread its row. Frame 7.7.
    static __device__ __forceinline__ void put(const Epilogue& e, WorkTile, u32 half, u32 i,
                                               const u32 (&words)[SUBTILE_N / 2]) {
        constexpr u32 CHUNKS = SUBTILE_N / 8, OF_PANEL = PANEL_NBYTES / 16;
        const u32 first = i * CHUNKS;
        const u32 buffer = half_buffer<ROW_NBYTES>(e, half) + first / OF_PANEL * PANEL;
#pragma unroll
        for (u32 chunk = 0; chunk < CHUNKS; ++chunk) {
            const u32 at = first % OF_PANEL + chunk;
            smem_st(buffer + swizzled_offset<PANEL_NBYTES>(lane_index(), at),
                    {words[4 * chunk], words[4 * chunk + 1], words[4 * chunk + 2],
                     words[4 * chunk + 3]});
        }
    }

    // Copy both panels, and close the group. Frame 7.9.
    static __device__ __forceinline__ void written(const Epilogue& e, WorkTile work, u32 half) {
        smem_fence_proxy_async();
        warp_sync();
        const bool elected = elect_sync() && e.is_inside(work);
#pragma unroll
        for (u32 panel = 0; panel < ROW_NBYTES / PANEL_NBYTES; ++panel)
            tma_store(elected, e.storage.params.d, half_column(work, half) + panel * D_BOX_N,
                      work.m * TILE_M + e.lane, work.l,
                      half_buffer<ROW_NBYTES>(e, half) + panel * PANEL);
        tma_commit_group();
    }

    // The copies are under way.
    static __device__ __forceinline__ void store_part(const Epilogue&, WorkTile, u32, u32) {}

    // Every copy has read its panel.
    static __device__ __forceinline__ void tail(const Epilogue&) { tma_wait_group_read<0>(); }
};
