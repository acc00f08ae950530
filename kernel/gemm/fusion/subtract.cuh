// subtract: a - b, rounded once.
#pragma once
#include "../../numerics/arithmetic.cuh"
#include "node.cuh"

template <class A, class B>
struct Subtract : Binary<A, B> {
    __device__ __forceinline__ float visit(const Visit& v) {
        return sub_f32(this->a.visit(v), this->b.visit(v));
    }
};
