// acc_fetch: the accumulator.
#pragma once
#include "node.cuh"

struct AccFetch : Leaf {
    __device__ __forceinline__ float visit(const Visit& v) { return v.acc; }
};
