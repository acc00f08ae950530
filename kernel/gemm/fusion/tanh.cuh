// tanh: the hyperbolic tangent.
#pragma once
#include "../../numerics/activation.cuh"
#include "node.cuh"

template <class A>
struct Tanh : Unary<A> {
    __device__ __forceinline__ float visit(const Visit& v) {
        return tanh_f32(this->a.visit(v));
    }
};
