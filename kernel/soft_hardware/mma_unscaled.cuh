// mma_unscaled: the MMAs without scale factors, of 16- and 8-bit elements, go to the queue.
#pragma once
#include "tensor_core_queue.cuh"

template <u32 CTA_GROUP, bool OF_16_BITS>
__device__ __forceinline__ void mma_unscaled_mma(bool elected, u32 d, u64 a_desc, u64 b_desc,
                                                 u32 idesc, bool enable_input_d) {
    const u32 what = OF_16_BITS ? MULTIPLY_F16 : MULTIPLY_F8;
    if (elected) enqueue<CTA_GROUP>({what, d, idesc, 0, 0, enable_input_d, a_desc, b_desc, 0});
}
