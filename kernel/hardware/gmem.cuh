// gmem: global memory with named allocations.
//
// What the kernel reads and writes without TMA: the bias and the scales of D.
#pragma once
#include "sm.cuh"

// A float32 where `inside`, else +0 and no access.
__device__ __forceinline__ float gmem_ld(const float* address, bool inside) {
    float value;
    asm volatile(
        "{\n\t"
        ".reg .pred p;\n\t"
        "setp.ne.b32 p, %2, 0;\n\t"
        "mov.f32 %0, 0f00000000;\n\t"
        "@p ld.global.f32 %0, [%1];\n\t"
        "}"
        : "=f"(value)
        : "l"(address), "r"(static_cast<u32>(inside))
        : "memory");
    return value;
}

__device__ __forceinline__ void gmem_st(u64 address, u16 data) {
    asm volatile("st.global.b16 [%0], %1;" ::"l"(address), "h"(data) : "memory");
}
