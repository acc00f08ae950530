// Part 6. mxf8f6f4: the MMAs of 8-, 6- and 4-bit elements with a scale for 32.
//
// An atom of scales serves four MMAs: each takes one byte of every word.
#pragma once
#include "../../hardware/mma_mxf8f6f4.cuh"
#include "one_sm.cuh"

template <u32 CTA_GROUP>
struct Mxf8f6f4 {
    static __device__ __forceinline__ void multiply(bool elected, u32 d, u64 a_desc, u64 b_desc,
                                                    u32 idesc, ScaleColumns scales,
                                                    bool accumulate) {
        mma_mxf8f6f4_mma<CTA_GROUP>(elected, d, a_desc, b_desc, idesc, scales.sfa, scales.sfb,
                                    accumulate);
    }
};

using OneSmMxf8f6f4 = Umma<Mxf8f6f4<1>>;
using TwoSmMxf8f6f4 = Umma<Mxf8f6f4<2>>;
