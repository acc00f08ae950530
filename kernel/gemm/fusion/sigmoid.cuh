// sigmoid: 1 / (1 + exp(-x)).
#pragma once
#include "../../numerics/activation.cuh"
#include "node.cuh"

template <class A>
struct Sigmoid : Unary<A> {
    __device__ __forceinline__ float visit(const Visit& v) {
        return sigmoid(this->a.visit(v));
    }
};
