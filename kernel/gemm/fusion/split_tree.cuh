// split_tree: a value that a branch takes too, before it is handed on.
//
// It is computed once. What the branch gives is not used: it is there for what it stores and
// reduces.
#pragma once
#include "node.cuh"

template <class A, class B>
struct SplitTree : Binary<A, B> {
    // Hand the value on.
    __device__ __forceinline__ float visit(const Visit& v) {
        const float shared = this->a.visit(v);
        this->b.visit({v.params, v.acc, v.column, v.inside, shared});
        return shared;
    }
};
