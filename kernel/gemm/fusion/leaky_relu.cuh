// leaky_relu: x > 0 ? x : x * slope.
#pragma once
#include "../../numerics/activation.cuh"
#include "node.cuh"

template <class A, class B>
struct LeakyRelu : Binary<A, B> {
    __device__ __forceinline__ float visit(const Visit& v) {
        return leaky_relu(this->a.visit(v), this->b.visit(v));
    }
};
