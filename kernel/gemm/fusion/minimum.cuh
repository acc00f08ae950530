// minimum: the smaller of a and b; a NaN wins.
#pragma once
#include "../../numerics/arithmetic.cuh"
#include "node.cuh"

template <class A, class B>
struct Minimum : Binary<A, B> {
    __device__ __forceinline__ float visit(const Visit& v) {
        return min_nan(this->a.visit(v), this->b.visit(v));
    }
};
