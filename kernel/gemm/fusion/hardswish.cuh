// hardswish: x * min(max(x + 3, 0), 6) / 6.
#pragma once
#include "../../numerics/activation.cuh"
#include "node.cuh"

template <class A>
struct Hardswish : Unary<A> {
    __device__ __forceinline__ float visit(const Visit& v) {
        return hardswish(this->a.visit(v));
    }
};
