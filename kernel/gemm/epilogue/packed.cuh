// packed: the formula's values of a subtile in BF16, two to a word.
#pragma once
#include "../../numerics/formats.cuh"
#include "../fusion/add_bf16.cuh"
#include "../fusion/embedding.cuh"

// Any formula: both numbers are rounded.
template <class T>
struct Packed {
    static __device__ __forceinline__ u32 of_pair(T& node, const Visit& low, const Visit& high) {
        return encode_bf16(node.visit(low), node.visit(high));
    }
};

// A table has pairs.
template <auto TABLE, auto ROWS>
struct Packed<Embedding<TABLE, ROWS>> {
    static __device__ __forceinline__ u32 of_pair(Embedding<TABLE, ROWS>& node, const Visit& low,
                                                  const Visit&) {
        return node.words[low.column / 2];
    }
};

// A sum of BF16 is never made wider.
template <class A, class B>
struct Packed<AddBf16<A, B>> {
    static __device__ __forceinline__ u32 of_pair(AddBf16<A, B>& node, const Visit& low,
                                                  const Visit& high) {
        return add_bf16x2(Packed<A>::of_pair(node.a, low, high),
                          Packed<B>::of_pair(node.b, low, high));
    }
};
