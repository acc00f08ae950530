// d_gelu: dy times the derivative of GELU's tanh form at z.
#pragma once
#include "../../numerics/activation.cuh"
#include "node.cuh"

template <class A, class B>
struct DGelu : Binary<A, B> {
    __device__ __forceinline__ float visit(const Visit& v) {
        return d_gelu(this->a.visit(v), this->b.visit(v));
    }
};
