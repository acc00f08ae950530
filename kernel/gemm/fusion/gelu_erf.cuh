// gelu_erf: GELU, x / 2 * (1 + erf(x / sqrt(2))).
#pragma once
#include "../../numerics/activation.cuh"
#include "node.cuh"

template <class A>
struct GeluErf : Unary<A> {
    __device__ __forceinline__ float visit(const Visit& v) {
        return gelu_erf(this->a.visit(v));
    }
};
