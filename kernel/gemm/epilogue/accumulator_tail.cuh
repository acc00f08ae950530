// Part 8. accumulator_tail: the epilogue has read all of its accumulators.
//
// Only overlapped ones need it: each is given back when a part has been read, so that the MMA
// warp cannot tell from the last one whether TMEM may be freed.
#pragma once
#include "../../hardware/tcgen05.cuh"
#include "../shared_storage.cuh"

// Tell the MMA warps of this CTA and of its peer. Frame 8.6.
template <class Storage>
__device__ __forceinline__ void accumulator_tail(const Storage& storage) {
    if constexpr (OVERLAPPED) {
        const u32 own = storage.tmem_dealloc();
        tcgen05_fence_before_thread_sync();
        if constexpr (CTA_GROUP > 1) mbarrier_arrive<true>(cluster_mapa(own, storage.cta.peer()));
        mbarrier_arrive<IN_CLUSTER>(own);
    }
}
