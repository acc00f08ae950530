// cvt: the conversions of 4-bit elements and of power-of-two scales.
//
// In memory the even element is the low half: PTX takes it second.
#pragma once
#include "sm.cuh"

// Eight E2M1 codes, the first in the low nibble.
__device__ __forceinline__ u32 cvt_e2m1x8(const float (&x)[8]) {
    u32 codes;
    asm("{\n\t"
        ".reg .b8 b0, b1, b2, b3;\n\t"
        "cvt.rn.satfinite.e2m1x2.f32 b0, %2, %1;\n\t"
        "cvt.rn.satfinite.e2m1x2.f32 b1, %4, %3;\n\t"
        "cvt.rn.satfinite.e2m1x2.f32 b2, %6, %5;\n\t"
        "cvt.rn.satfinite.e2m1x2.f32 b3, %8, %7;\n\t"
        "mov.b32 %0, {b0, b1, b2, b3};\n\t"
        "}"
        : "=r"(codes)
        : "f"(x[0]), "f"(x[1]), "f"(x[2]), "f"(x[3]), "f"(x[4]), "f"(x[5]), "f"(x[6]), "f"(x[7]));
    return codes;
}

// Two UE8M0 codes, rounded up, the first in the low byte.
__device__ __forceinline__ u16 cvt_ue8m0x2(float first, float second) {
    u16 codes;
    asm("cvt.rp.satfinite.ue8m0x2.f32 %0, %2, %1;" : "=h"(codes) : "f"(first), "f"(second));
    return codes;
}

// Two UE8M0 codes to a pair of bf16, the first in the low half.
__device__ __forceinline__ u32 cvt_bf16x2(u16 codes) {
    u32 pair;
    asm("cvt.rn.bf16x2.ue8m0x2 %0, %1;" : "=r"(pair) : "h"(codes));
    return pair;
}
