// mma_mxf8f6f4: the tcgen05 MMA of 8-, 6- and 4-bit elements with UE8M0 scales.
#pragma once
#include "sm.cuh"

// D = (A * SFA) * (B * SFB) + D over K = 32; without enable_input_d, D starts at +0. Of each row's
// word of scales the id in the descriptor names the byte.
template <u32 CTA_GROUP>
__device__ __forceinline__ void mma_mxf8f6f4_mma(bool elected, u32 d, u64 a_desc, u64 b_desc,
                                                 u32 idesc, u32 sfa, u32 sfb,
                                                 bool enable_input_d) {
    asm volatile(
        "{\n\t"
        ".reg .pred p, accumulate;\n\t"
        "setp.ne.b32 p, %7, 0;\n\t"
        "setp.ne.b32 accumulate, %6, 0;\n\t"
        "@p tcgen05.mma.cta_group::%8.kind::mxf8f6f4.block_scale.scale_vec::1X"
        " [%0], %1, %2, %3, [%4], [%5], accumulate;\n\t"
        "}" ::"r"(d),
        "l"(a_desc), "l"(b_desc), "r"(idesc), "r"(sfa), "r"(sfb),
        "r"(static_cast<u32>(enable_input_d)), "r"(static_cast<u32>(elected)), "n"(CTA_GROUP)
        : "memory");
}
