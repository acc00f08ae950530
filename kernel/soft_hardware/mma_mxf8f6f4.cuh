// mma_mxf8f6f4: the MMA of 8-bit elements with UE8M0 scales goes to the queue.
#pragma once
#include "tensor_core_queue.cuh"

template <u32 CTA_GROUP>
__device__ __forceinline__ void mma_mxf8f6f4_mma(bool elected, u32 d, u64 a_desc, u64 b_desc,
                                                 u32 idesc, u32 sfa, u32 sfb,
                                                 bool enable_input_d) {
    if (elected)
        enqueue<CTA_GROUP>({MULTIPLY_MXF8, d, idesc, sfa, sfb, enable_input_d, a_desc, b_desc, 1});
}
