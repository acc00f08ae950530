// relu: ReLU, max(x, +0).
#pragma once
#include "../../numerics/activation.cuh"
#include "node.cuh"

template <class A>
struct Relu : Unary<A> {
    __device__ __forceinline__ float visit(const Visit& v) { return relu(this->a.visit(v)); }
};
