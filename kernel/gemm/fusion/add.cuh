// add: a + b, rounded once.
#pragma once
#include "../../numerics/arithmetic.cuh"
#include "node.cuh"

template <class A, class B>
struct Add : Binary<A, B> {
    __device__ __forceinline__ float visit(const Visit& v) {
        return add_f32(this->a.visit(v), this->b.visit(v));
    }
};
