// scalar_broadcast: one number of the launch, the same for every element.
#pragma once
#include "node.cuh"

template <auto NUMBER>
struct ScalarBroadcast : Leaf {
    __device__ __forceinline__ float visit(const Visit& v) { return v.params.*NUMBER; }
};
