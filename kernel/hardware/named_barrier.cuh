// Part 7. named_barrier: the sixteen CTA barriers, ``bar.sync`` and ``bar.arrive``.
//
// A barrier counts threads; whole warps come.
#pragma once
#include "sm.cuh"

__device__ __forceinline__ void named_barrier_sync(u32 barrier, u32 threads) {
    asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

__device__ __forceinline__ void named_barrier_arrive(u32 barrier, u32 threads) {
    asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}
