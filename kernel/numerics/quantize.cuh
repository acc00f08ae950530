// quantize: block-scaled quantisation by CUTLASS's rule, and the way back.
//
//   amax  = max.NaN(|z_0|, |z_1|, ...)
//   scale = encode(amax * (norm * (1/6)))            UE4M3: rn, UE8M0: round up
//   s     = min.NaN(norm * (1 / decode(scale)), FLT_MAX)
//   code  = encode_e2m1(z_i * s)
#pragma once
#include "formats.cuh"

__device__ __forceinline__ float block_amax(const float* z) {
    float amax = fabsf(z[0]);
#pragma unroll
    for (u32 i = 1; i < 16; ++i) amax = max_nan(amax, fabsf(z[i]));
    return amax;
}

// Two blocks of 16 elements: 32 codes in four words, and their two scales, the first one low.
template <bool UE8M0>
__device__ __forceinline__ u16 quantize_blocks(const float (&z)[32], float norm,
                                               u32 (&codes)[4]) {
    const float one_sixth = from_bits(0x3e2aaaab);
    const float factor = mul_f32(norm, one_sixth);
    const float target[2] = {mul_f32(block_amax(z), factor), mul_f32(block_amax(z + 16), factor)};
    u16 scales;
    float reciprocal[2];
    if constexpr (UE8M0) {
        scales = encode_ue8m0(target[0], target[1]);
        // 1 / 2^(c - 127) has code 254 - c; 0xff, NaN, wraps to 0xff.
        const u32 low = 254 - (scales & 0xff) & 0xff, high = 254 - (scales >> 8) & 0xff;
        decode_ue8m0(static_cast<u16>(high << 8 | low), reciprocal[0], reciprocal[1]);
    } else {
        scales = encode_ue4m3(target[0], target[1]);
        decode_ue4m3(scales, reciprocal[0], reciprocal[1]);
        reciprocal[0] = div_f32(1.0f, reciprocal[0]);
        reciprocal[1] = div_f32(1.0f, reciprocal[1]);
    }
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
