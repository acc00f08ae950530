// cvt: the conversions that sm_90 lacks, in integers.
#pragma once
#include "../hardware/sm.cuh"

// Nearest of 0, 0.5, 1, 1.5, 2, 3, 4, 6, ties to even, with the sign; NaN gives +6.
__device__ __forceinline__ u32 cvt_e2m1(float x) {
    const float magnitude = fabsf(x);
    if (!(magnitude <= 3.402823466e38f) && magnitude != magnitude) return 7;
    u32 code = magnitude > 0.25f;
    code += magnitude >= 0.75f;
    code += magnitude > 1.25f;
    code += magnitude >= 1.75f;
    code += magnitude > 2.5f;
    code += magnitude >= 3.5f;
    code += magnitude > 5.0f;
    return code | (__float_as_uint(x) >> 31) << 3;
}

__device__ __forceinline__ u32 cvt_e2m1x8(const float (&x)[8]) {
    u32 codes = 0;
#pragma unroll
    for (u32 i = 0; i < 8; ++i) codes |= cvt_e2m1(x[i]) << 4 * i;
    return codes;
}

// The power of two at or above |x|, as cuda_fp8.hpp has it: NaN gives 0xff, more than 2^127
// gives 0xfe, what is not above 2^-127 gives 0.
__device__ __forceinline__ u32 cvt_ue8m0(float x) {
    const u32 magnitude = __float_as_uint(x) & 0x7fffffff;
    if (magnitude > 0x7f800000) return 0xff;
    if (magnitude <= 0x00400000) return 0;
    const u32 code = (magnitude + 0x7fffff) >> 23;
    return code < 0xfe ? code : 0xfe;
}

__device__ __forceinline__ u16 cvt_ue8m0x2(float first, float second) {
    return cvt_ue8m0(second) << 8 | cvt_ue8m0(first);
}

// 2^(code - 127): 0 is the subnormal 2^-127, 0xff is NaN.
__device__ __forceinline__ u32 cvt_bf16(u32 code) {
    return code == 0xff ? 0x7fff : code == 0 ? 0x40 : code << 7;
}

__device__ __forceinline__ u32 cvt_bf16x2(u16 codes) {
    return cvt_bf16(codes >> 8) << 16 | cvt_bf16(codes & 0xff);
}
