// maximum: the larger of a and b; a NaN wins.
#pragma once
#include "../../numerics/arithmetic.cuh"
#include "node.cuh"

template <class A, class B>
struct Maximum : Binary<A, B> {
    __device__ __forceinline__ float visit(const Visit& v) {
        return max_nan(this->a.visit(v), this->b.visit(v));
    }
};
