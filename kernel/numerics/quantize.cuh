// quantize: block-scaled quantisation by CUTLASS's rule, and the way back.
//
//   amax  = max.NaN(|z_0|, |z_1|, ...)
//   scale = encode(amax * (norm * (1/6)))            UE4M3: rn, UE8M0: round up
//   s     = min.NaN(norm * (1 / decode(scale)), FLT_MAX)
//   code  = encode_e2m1(z_i * s)
#pragma once
#include "elements.cuh"

__device__ __forceinline__ float block_amax(const float* z) {
    float amax = fabsf(z[0]);
#pragma unroll
    for (u32 i = 1; i < 16; ++i) amax = max_nan(amax, fabsf(z[i]));
    return amax;
}

// Two blocks of 16 elements: 32 codes in four words, and their two scales, the first one low.
template <class Scale>
__device__ __forceinline__ u16 quantize_blocks(const float* z, float norm, u32* codes) {
    const float one_sixth = from_bits(0x3e2aaaab);
    const float factor = mul_f32(norm, one_sixth);
    const float target[2] = {mul_f32(block_amax(z), factor), mul_f32(block_amax(z + 16), factor)};
    float reciprocal[2];
    const u16 scales = Scale::encode(target, reciprocal);
    const float flt_max = from_bits(0x7f7fffff);
#pragma unroll
    for (u32 block = 0; block < 2; ++block) {
        const float s = min_nan(mul_f32(norm, reciprocal[block]), flt_max);
#pragma unroll
        for (u32 word = 0; word < 2; ++word) {
            float scaled[8];
#pragma unroll
            for (u32 i = 0; i < 8; ++i) scaled[i] = mul_f32(z[16 * block + 8 * word + i], s);
            codes[2 * block + word] = encode_e2m1(scaled);
        }
    }
    return scales;
}
