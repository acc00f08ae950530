// tensor_core: the unit behind tcgen05, which silicon has beside the warps.
#pragma once
#include "sm.cuh"

constexpr u32 TENSOR_CORE_THREADS = 0;  // of the CTA, in addition to those of the kernel

// What the threads of the unit run: there are none.
template <bool IN_CLUSTER, u32 CTA_GROUP>
__device__ __forceinline__ void tensor_core() {}
