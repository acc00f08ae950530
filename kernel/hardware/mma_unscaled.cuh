// mma_unscaled: the tcgen05 MMAs without scale factors, of 16-bit to 4-bit elements.
#pragma once
#include "sm.cuh"

// D = A * B + D over 32 bytes along K; without enable_input_d, D starts at +0.
template <u32 CTA_GROUP, bool OF_16_BITS>
__device__ __forceinline__ void mma_unscaled_mma(bool elected, u32 d, u64 a_desc, u64 b_desc,
                                                 u32 idesc, bool enable_input_d) {
    if constexpr (OF_16_BITS)
        asm volatile(
            "{\n\t"
            ".reg .pred p, accumulate;\n\t"
            "setp.ne.b32 p, %5, 0;\n\t"
            "setp.ne.b32 accumulate, %4, 0;\n\t"
            "@p tcgen05.mma.cta_group::%6.kind::f16 [%0], %1, %2, %3, accumulate;\n\t"
            "}" ::"r"(d),
            "l"(a_desc), "l"(b_desc), "r"(idesc), "r"(static_cast<u32>(enable_input_d)),
            "r"(static_cast<u32>(elected)), "n"(CTA_GROUP)
            : "memory");
    else
        asm volatile(
            "{\n\t"
            ".reg .pred p, accumulate;\n\t"
            "setp.ne.b32 p, %5, 0;\n\t"
            "setp.ne.b32 accumulate, %4, 0;\n\t"
            "@p tcgen05.mma.cta_group::%6.kind::f8f6f4 [%0], %1, %2, %3, accumulate;\n\t"
            "}" ::"r"(d),
            "l"(a_desc), "l"(b_desc), "r"(idesc), "r"(static_cast<u32>(enable_input_d)),
            "r"(static_cast<u32>(elected)), "n"(CTA_GROUP)
            : "memory");
}
