// activation: activations with bits that every backend can reproduce.
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

// 1 / (1 + exp(-x))
__device__ __forceinline__ float sigmoid(float x) {
    return div_f32(1.0f, add_f32(1.0f, exp_f32(-at_least(x, -128.0f))));
}

// Below 0.625 x + x^3 P(x^2), Cephes tanhf; above 1 - 2 / (exp(2x) + 1) of the magnitude.
__device__ __forceinline__ float tanh_f32(float x) {
    const float square = mul_f32(x, x);
    float p = from_bits(0xbbbaf0ea);
    p = fma_f32(p, square, from_bits(0x3ca9134e));
    p = fma_f32(p, square, from_bits(0xbd5c1e2d));
    p = fma_f32(p, square, from_bits(0x3e088393));
    p = fma_f32(p, square, from_bits(0xbeaaaa99));
    const float small = fma_f32(mul_f32(p, square), x, x);
    const float size = fabsf(x);
    const float e = exp_f32(add_f32(size, size));
    const float large = sub_f32(1.0f, div_f32(2.0f, add_f32(e, 1.0f)));
    return size < 0.625f ? small : copysignf(large, x);
}

// 1 - t P(t) exp(-x^2), t = 1 / (1 + 0.3275911 x), of the magnitude: Abramowitz, Stegun 7.1.26.
__device__ __forceinline__ float erf_f32(float x) {
    const float size = fabsf(x);
    const float t = div_f32(1.0f, fma_f32(from_bits(0x3ea7ba05), size, 1.0f));
    const float e = exp_f32(-mul_f32(size, size));
    float p = from_bits(0x3f87dc22);
    p = fma_f32(p, t, from_bits(0xbfba00e3));
    p = fma_f32(p, t, from_bits(0x3fb5f0e3));
    p = fma_f32(p, t, from_bits(0xbe91a98e));
    p = fma_f32(p, t, from_bits(0x3e827906));
    return copysignf(fma_f32(-mul_f32(p, t), e, 1.0f), x);
}

// x / 2 * (1 + erf(x / sqrt(2)))
__device__ __forceinline__ float gelu_erf(float x) {
    const float cumulative = add_f32(1.0f, erf_f32(mul_f32(x, from_bits(0x3f3504f3))));
    return mul_f32(mul_f32(0.5f, x), cumulative);
}

// x * min(max(x + 3, 0), 6) / 6
__device__ __forceinline__ float hardswish(float x) {
    const float relu6 = min_nan(max_nan(add_f32(x, 3.0f), 0.0f), 6.0f);
    return mul_f32(mul_f32(x, relu6), from_bits(0x3e2aaaab));
}

__device__ __forceinline__ float leaky_relu(float x, float slope) {
    return x > 0.0f ? x : mul_f32(x, slope);
}

__device__ __forceinline__ float d_relu(float dy, float mask) { return mask != 0.0f ? dy : 0.0f; }

__device__ __forceinline__ float d_relu_z(float dy, float z) { return z < 0.0f ? 0.0f : dy; }

// dy times z / 2 * (1 - t^2) (k0 + k2 z^2) + (1 + t) / 2, t = tanh(k0 z (1 + k1 z^2)).
__device__ __forceinline__ float d_gelu(float dy, float z) {
    const float square = mul_f32(z, z), k0 = from_bits(0x3f4c422a);
    const float inner = mul_f32(mul_f32(k0, z), fma_f32(from_bits(0x3d372713), square, 1.0f));
    const float t = tanh_f32(inner);
    const float slope = fma_f32(-t, t, 1.0f);
    const float grown = fma_f32(from_bits(0x3ddb33b6), square, k0);
    const float cumulative = mul_f32(0.5f, add_f32(1.0f, t));
    const float factor = fma_f32(mul_f32(0.5f, z), mul_f32(slope, grown), cumulative);
    return mul_f32(factor, dy);
}
