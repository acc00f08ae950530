// bulk_staging: rows of 272 bytes, each of which goes to D by a bulk copy.
#pragma once
#include "../../hardware/bulk_copy.cuh"
#include "../../hardware/tma.cuh"
#include "padded_staging.cuh"

template <u32 ROW_NBYTES>
struct BulkStaging : PaddedStaging<ROW_NBYTES> {
    // The copies of this half's last rows have read them, and every lane may know.
    static __device__ __forceinline__ void acquire(const Epilogue&) {
        tma_wait_group_read<PENDING_HALVES>();
        warp_sync();
    }

    // Copy each row, and close the group. Frame 7.9.
    static __device__ __forceinline__ void written(const Epilogue& e, WorkTile work, u32 half) {
        smem_fence_proxy_async();
        warp_sync();
        const u32 source = half_buffer<ROW_NBYTES>(e, half), nbytes = row_nbytes(e, work, half);
        const u64 address = d_addresses(e, work, half), pitch = d_pitch(e.storage.params);
        if (elect_sync() && nbytes > 0) {
#pragma unroll 1
            for (u32 row = 0; row < rows_inside(e, work); ++row)
                bulk_copy_store(address + row * pitch, source + row * ROW_NBYTES, nbytes);
        }
        tma_commit_group();
    }

    // The copies are under way.
    static __device__ __forceinline__ void store_part(const Epilogue&, WorkTile, u32, u32) {}

    // Every copy has read its row.
    static __device__ __forceinline__ void tail(const Epilogue&) { tma_wait_group_read<0>(); }
};
