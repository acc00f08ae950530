// add_bf16: a + b of BF16, each rounded to it first, and the sum once.
#pragma once
#include "../../numerics/bf16x2.cuh"
#include "../../numerics/formats.cuh"
#include "node.cuh"

template <class A, class B>
struct AddBf16 : Binary<A, B> {
    __device__ __forceinline__ float visit(const Visit& v) {
        const u32 a = encode_bf16(this->a.visit(v), 0.0f), b = encode_bf16(this->b.visit(v), 0.0f);
        return from_bits(add_bf16x2(a, b) << 16);
    }
};
