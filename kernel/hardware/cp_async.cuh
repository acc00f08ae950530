// cp_async: copies of a few bytes per thread, and the arrival that follows them.
//
// They write through the generic proxy.
#pragma once
#include "sm.cuh"

// Copy `source_nbytes` bytes, at most NBYTES; the rest of the target becomes 0.
template <u32 NBYTES>
__device__ __forceinline__ void cp_async_copy(u32 target, u64 source, u32 source_nbytes) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(target), "l"(source),
                 "n"(NBYTES), "r"(source_nbytes)
                 : "memory");
}

// One arrival of every lane, when its copies so far are complete.
__device__ __forceinline__ void cp_async_mbarrier_arrive_noinc(u32 mbar) {
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(mbar) : "memory");
}
