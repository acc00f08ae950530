// delay: sleeps of random length, by a seed that the host sets, to disturb the order of events.
//
// A place, a warp, a CTA and an operand give the same sleep in every launch of a seed.
#pragma once
#include "../hardware/sm.cuh"

#ifdef SOFT_DELAYS
__device__ u32 soft_delay_seed;  // 0: no sleeps

__device__ __forceinline__ void delay(u32 place, u32 operand) {
    if (soft_delay_seed == 0) return;
    u32 hash = soft_delay_seed * 0x9e3779b1 ^ place * 0x85ebca6b ^ operand * 0xc2b2ae35;
    hash ^= (blockIdx.x + blockIdx.y * 31 + blockIdx.z * 961) * 0x27d4eb2f + threadIdx.x / 32;
    hash = (hash ^ hash >> 15) * 0x2c1b3c6d;
    hash = (hash ^ hash >> 12) * 0x297a2d39;
    hash ^= hash >> 15;
    if (hash & 3) return;
    __nanosleep(hash >> 4 & ((64u << (hash >> 2 & 3) * 2) - 1));  // below 64, 256, 1024, 4096 ns
}
#else
__device__ __forceinline__ void delay(u32, u32) {}
#endif
