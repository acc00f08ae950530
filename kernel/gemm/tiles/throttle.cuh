// Part 2. throttle: the scheduler asks once the load warp has begun a tile.
#pragma once
#include "../shared_storage.cuh"

// CUTLASS's CLC throttle pipeline, from the load warp's side.
struct ClcThrottle {
    Producer<CLC_STAGES> ring;

    __device__ __forceinline__ explicit ClcThrottle(const SharedStorage& storage)
        : ring{storage.throttle()} {}

    // A tile has been started: one more may be asked for.
    __device__ __forceinline__ void signal() { arrive_on_full(ring.acquire()); }
};

// In a cluster the first CTA asks for all, and is throttled by its own loads.
struct FirstCtaThrottle : ClcThrottle {
    bool asks;

    __device__ __forceinline__ explicit FirstCtaThrottle(const SharedStorage& storage)
        : ClcThrottle(storage), asks(storage.cta.is_first()) {}

    __device__ __forceinline__ void signal() {
        if (asks) ClcThrottle::signal();
    }
};

// A static scheduler asks nobody.
struct NoThrottle {
    __device__ __forceinline__ explicit NoThrottle(const SharedStorage&) {}
    __device__ __forceinline__ void signal() {}
};
