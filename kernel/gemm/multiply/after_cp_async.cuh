// Part 6. after_cp_async: the MMA of one SM, on what threads have copied.
//
// cp.async writes through the generic proxy, and tcgen05.mma reads through the async proxy. The
// load warp cannot fence copies that it does not wait for, so the MMA warp does, which has waited
// for them on the stage's full barrier.
#pragma once
#include "../../hardware/smem.cuh"
#include "one_sm.cuh"

struct AfterCpAsync : OneSm {
    using OneSm::OneSm;

    // Issue one MMA; the first of a k-tile comes after the fence.
    __device__ __forceinline__ void issue(bool elected, Stage accumulator,
                                          const BufferDescriptors& buffer, ScaleColumns scales,
                                          WorkTile work, u32 k_block, bool accumulate) const {
        if (k_block == 0) smem_fence_proxy_async();
        OneSm::issue(elected, accumulator, buffer, scales, work, k_block, accumulate);
    }
};
