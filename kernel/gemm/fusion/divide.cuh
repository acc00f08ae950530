// divide: a / b, rounded once.
#pragma once
#include "../../numerics/arithmetic.cuh"
#include "node.cuh"

template <class A, class B>
struct Divide : Binary<A, B> {
    __device__ __forceinline__ float visit(const Visit& v) {
        return div_f32(this->a.visit(v), this->b.visit(v));
    }
};
