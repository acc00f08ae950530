// Part 4. allocator_overlapped: TMEM of overlapped accumulators.
//
// It is freed when the epilogue has said that it has done: of this CTA, or of both of a pair.
#pragma once
#include "allocator.cuh"
#include "allocator_2sm.cuh"

// Wait until every epilogue warp of these accumulators has done. Frame 8.6.
__device__ __forceinline__ void epilogue_done(const SharedStorage& storage) {
    mbarrier_try_wait<IN_CLUSTER>(storage.tmem_dealloc(), 0);
}

// TMEM of one CTA whose accumulators overlap.
struct OverlappedAllocator1Sm : Allocator1Sm {
    // Give the columns back after the epilogue. Frames 8.5 and 8.6.
    __device__ __forceinline__ void free(u32 taddr, u32 columns) const {
        epilogue_done(storage);
        tmem_dealloc<1>(taddr, columns);
    }
};

// TMEM of a pair whose accumulators overlap.
struct OverlappedAllocator2Sm : Allocator2Sm {
    // Give the columns back after both epilogues. Frames 8.5 and 8.6.
    __device__ __forceinline__ void free(u32 taddr, u32 columns) const {
        epilogue_done(storage);
        tmem_dealloc<2>(taddr, columns);
    }
};
