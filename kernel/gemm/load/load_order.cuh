// Part 5. load_order: C waits for the first k-tiles.
#pragma once
#include "../shared_storage.cuh"

// CUTLASS's LoadOrderBarrier, passed once.
struct LoadOrder {
    u32 barrier;
    bool first = true;

    __device__ __forceinline__ explicit LoadOrder(const SharedStorage& storage)
        : barrier(storage.load_order()) {}

    // The prologue of a tile has been started; only the first one counts.
    __device__ __forceinline__ void arrive() {
        if (first) mbarrier_arrive(barrier);
        first = false;
    }

    __device__ __forceinline__ void wait() const { mbarrier_try_wait(barrier, 0); }
};

// Without C nobody waits.
struct NoLoadOrder {
    __device__ __forceinline__ explicit NoLoadOrder(const SharedStorage&) {}
    __device__ __forceinline__ void arrive() {}
};
