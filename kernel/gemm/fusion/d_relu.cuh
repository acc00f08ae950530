// d_relu: mask != 0 ? dy : 0, with the bits of a ReLU mask.
#pragma once
#include "../../numerics/activation.cuh"
#include "node.cuh"

template <class A, class B>
struct DRelu : Binary<A, B> {
    __device__ __forceinline__ float visit(const Visit& v) {
        return d_relu(this->a.visit(v), this->b.visit(v));
    }
};
