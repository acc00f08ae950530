// arithmetic: correctly rounded float32 operations on arrays: fma, mul, add, div.
//
// Here on one number. The compiler contracts none of these.
#pragma once
#include "../hardware/sm.cuh"

__device__ __forceinline__ float fma_f32(float a, float b, float c) { return __fmaf_rn(a, b, c); }
__device__ __forceinline__ float mul_f32(float a, float b) { return __fmul_rn(a, b); }
__device__ __forceinline__ float add_f32(float a, float b) { return __fadd_rn(a, b); }
__device__ __forceinline__ float sub_f32(float a, float b) { return __fsub_rn(a, b); }
__device__ __forceinline__ float div_f32(float a, float b) { return __fdiv_rn(a, b); }

// max and min that keep a NaN, where fmaxf would drop it.
__device__ __forceinline__ float max_nan(float a, float b) {
    float larger;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(larger) : "f"(a), "f"(b));
    return larger;
}

__device__ __forceinline__ float min_nan(float a, float b) {
    float smaller;
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(smaller) : "f"(a), "f"(b));
    return smaller;
}

__device__ __forceinline__ float from_bits(u32 bits) { return __uint_as_float(bits); }
