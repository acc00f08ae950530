// silu: SiLU, x / (1 + exp(-x)).
#pragma once
#include "../../numerics/activation.cuh"
#include "node.cuh"

template <class A>
struct Silu : Unary<A> {
    __device__ __forceinline__ float visit(const Visit& v) { return silu(this->a.visit(v)); }
};
