// constant: one number, compiled into the kernel.
#pragma once
#include "../../numerics/arithmetic.cuh"
#include "node.cuh"

// A float32 by its bits.
template <u32 BITS>
struct Constant : Leaf {
    __device__ __forceinline__ float visit(const Visit&) { return from_bits(BITS); }
};
