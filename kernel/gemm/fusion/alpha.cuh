// alpha: the factor that the launch passes.
#pragma once
#include "node.cuh"

struct Alpha : Leaf {
    __device__ __forceinline__ float visit(const Visit& v) { return v.params.alpha; }
};
