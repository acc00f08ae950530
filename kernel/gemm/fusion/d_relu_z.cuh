// d_relu_z: z < 0 ? 0 : dy, with the value before ReLU.
#pragma once
#include "../../numerics/activation.cuh"
#include "node.cuh"

template <class A, class B>
struct DReluZ : Binary<A, B> {
    __device__ __forceinline__ float visit(const Visit& v) {
        return d_relu_z(this->a.visit(v), this->b.visit(v));
    }
};
