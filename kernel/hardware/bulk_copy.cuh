// bulk_copy: asynchronous copies of bytes in a row, without a tensor map.
//
// A store belongs to a bulk group of the thread that issues it. Sizes and addresses are multiples
// of 16 bytes.
#pragma once
#include "sm.cuh"

__device__ __forceinline__ void bulk_copy_store(u64 dst, u32 src, u32 nbytes) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(dst),
                 "r"(src), "r"(nbytes)
                 : "memory");
}
