// gelu: GELU, x / (1 + exp(-2u)), the tanh form.
#pragma once
#include "../../numerics/activation.cuh"
#include "node.cuh"

template <class A>
struct Gelu : Unary<A> {
    __device__ __forceinline__ float visit(const Visit& v) { return gelu(this->a.visit(v)); }
};
