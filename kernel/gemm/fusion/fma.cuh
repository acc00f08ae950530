// fma: a * b + c, rounded once.
#pragma once
#include "../../numerics/arithmetic.cuh"
#include "node.cuh"

template <class A, class B, class C>
struct Fma : Ternary<A, B, C> {
    __device__ __forceinline__ float visit(const Visit& v) {
        return fma_f32(this->a.visit(v), this->b.visit(v), this->c.visit(v));
    }
};
