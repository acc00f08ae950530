// formats: the bit formats of NVFP4 and MXFP4, and the PTX conversions between them.
//
// One wrapper for each cvt. In memory the even element is the low half: PTX takes it second.
#pragma once
#include "../hardware/cvt.cuh"
#include "arithmetic.cuh"

// Eight E2M1 codes, the first in the low nibble.
__device__ __forceinline__ u32 encode_e2m1(const float (&x)[8]) {
    return cvt_e2m1x8(x);
}

// Two scale codes, the first in the low byte.
__device__ __forceinline__ u16 encode_ue4m3(float first, float second) {
    u16 codes;
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %2, %1;" : "=h"(codes) : "f"(first), "f"(second));
    return codes;
}

// Two E5M2 codes, likewise.
__device__ __forceinline__ u16 encode_e5m2(float first, float second) {
    u16 codes;
    asm("cvt.rn.satfinite.e5m2x2.f32 %0, %2, %1;" : "=h"(codes) : "f"(first), "f"(second));
    return codes;
}

__device__ __forceinline__ u16 encode_ue8m0(float first, float second) {
    return cvt_ue8m0x2(first, second);
}

__device__ __forceinline__ void decode_ue4m3(u16 codes, float& first, float& second) {
    asm("{\n\t"
        ".reg .b32 pair;\n\t"
        ".reg .b16 low, high;\n\t"
        "cvt.rn.f16x2.e4m3x2 pair, %2;\n\t"
        "mov.b32 {low, high}, pair;\n\t"
        "cvt.f32.f16 %0, low;\n\t"
        "cvt.f32.f16 %1, high;\n\t"
        "}"
        : "=f"(first), "=f"(second)
        : "h"(codes));
}

__device__ __forceinline__ void decode_e5m2(u16 codes, float& first, float& second) {
    asm("{\n\t"
        ".reg .b32 pair;\n\t"
        ".reg .b16 low, high;\n\t"
        "cvt.rn.f16x2.e5m2x2 pair, %2;\n\t"
        "mov.b32 {low, high}, pair;\n\t"
        "cvt.f32.f16 %0, low;\n\t"
        "cvt.f32.f16 %1, high;\n\t"
        "}"
        : "=f"(first), "=f"(second)
        : "h"(codes));
}

__device__ __forceinline__ void decode_ue8m0(u16 codes, float& first, float& second) {
    const u32 pair = cvt_bf16x2(codes);
    first = from_bits(pair << 16);
    second = from_bits(pair & 0xffff0000);
}

__device__ __forceinline__ u32 encode_bf16(float first, float second) {
    u32 pair;
    asm("cvt.rn.bf16x2.f32 %0, %2, %1;" : "=r"(pair) : "f"(first), "f"(second));
    return pair;
}

__device__ __forceinline__ u32 encode_f16(float first, float second) {
    u32 pair;
    asm("cvt.rn.f16x2.f32 %0, %2, %1;" : "=r"(pair) : "f"(first), "f"(second));
    return pair;
}

__device__ __forceinline__ void decode_bf16(u32 pair, float& first, float& second) {
    first = from_bits(pair << 16);
    second = from_bits(pair & 0xffff0000);
}

__device__ __forceinline__ void decode_f16(u32 pair, float& first, float& second) {
    asm("{\n\t"
        ".reg .b16 low, high;\n\t"
        "mov.b32 {low, high}, %2;\n\t"
        "cvt.f32.f16 %0, low;\n\t"
        "cvt.f32.f16 %1, high;\n\t"
        "}"
        : "=f"(first), "=f"(second)
        : "r"(pair));
}
