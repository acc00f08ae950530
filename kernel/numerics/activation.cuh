// activation: ReLU, GELU and SiLU with bits that every backend can reproduce.
//
// A fixed sequence of correctly rounded operations; the order is the definition.
#pragma once
#include "arithmetic.cuh"

// x < bound ? bound : x keeps a NaN.
__device__ __forceinline__ float at_least(float x, float bound) { return x < bound ? bound : x; }

// exp(x) for finite results above 2^-126; Inf from 2^127.5 up.
__device__ __forceinline__ float exp_f32(float x) {
    x = at_least(x, -87.0f);
    x = x > 89.0f ? 89.0f : x;
    const float round_magic = from_bits(0x4b400000);  // 1.5 * 2^23
    const float shifted = fma_f32(x, from_bits(0x3fb8aa3b), round_magic);  // log2(e)
    const float n = add_f32(shifted, -round_magic);
    float r = fma_f32(n, -from_bits(0x3f318000), x);  // ln2, its first 9 bits
    r = fma_f32(n, -from_bits(0xb95e8083), r);        // and the rest
    float p = from_bits(0x39506967);  // exp(r) = 1 + r + r^2 * P(r), Cephes expf
    p = fma_f32(p, r, from_bits(0x3ab743ce));
    p = fma_f32(p, r, from_bits(0x3c088908));
    p = fma_f32(p, r, from_bits(0x3d2aa9c1));
    p = fma_f32(p, r, from_bits(0x3e2aaaaa));
    p = fma_f32(p, r, from_bits(0x3f000000));
    p = fma_f32(p, r, 1.0f);
    p = fma_f32(p, r, 1.0f);
    // 2^n by its exponent field: the low 9 bits of `shifted` are n, those of the magic are 0.
    const float power_of_two = from_bits((__float_as_uint(shifted) + 127) << 23);
    return mul_f32(p, power_of_two);
}

__device__ __forceinline__ float relu(float x) { return x <= 0.0f ? 0.0f : x; }

// x / (1 + exp(-2u)), u = sqrt(2/pi) * (x + 0.044715 x^3); -2u = x * (CUBIC * x^2 + LINEAR).
__device__ __forceinline__ float gelu(float x) {
    const float clamped = at_least(x, -16.0f);
    const float slope =
        fma_f32(mul_f32(clamped, clamped), from_bits(0xbd922279), from_bits(0xbfcc422a));
    const float e = exp_f32(mul_f32(clamped, slope));
    return div_f32(clamped, add_f32(1.0f, e));
}

// x / (1 + exp(-x))
__device__ __forceinline__ float silu(float x) {
    const float clamped = at_least(x, -128.0f);
    const float e = exp_f32(-clamped);
    return div_f32(clamped, add_f32(1.0f, e));
}
