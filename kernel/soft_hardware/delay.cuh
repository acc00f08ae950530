// delay: sleeps of random length, by a seed that the host sets, to disturb the order of events.
//
// A place, an operand, a warp and a CTA are a site. It gives the same sleep in every launch of a
// seed. The host may leave sites out, and reads which ones slept.
#pragma once
#include "../hardware/sm.cuh"

#ifdef SOFT_DELAYS
constexpr u32 DELAY_SITES = 4096;

struct DelaySite {
    u32 place, operand, warp, nanoseconds;  // of the warp: its CTA's y and x in bytes 2 and 1
};

__device__ u32 soft_delay_seed;  // 0: no sleeps
__device__ u32 soft_delay_left_out[DELAY_SITES / 32];  // a bit for each site
__device__ DelaySite soft_delay_slept[DELAY_SITES];

__device__ __forceinline__ u32 scrambled(u32 hash) {
    hash = (hash ^ hash >> 15) * 0x2c1b3c6d;
    hash = (hash ^ hash >> 12) * 0x297a2d39;
    return hash ^ hash >> 15;
}

__device__ __noinline__ void sleep_at(u32 place, u32 operand) {
    u32 hash = place * 0x85ebca6b ^ operand * 0xc2b2ae35 ^ threadIdx.x / 32;
    hash = scrambled(hash ^ (blockIdx.x + blockIdx.y * 31 + blockIdx.z * 961) * 0x27d4eb2f);
    const u32 site = hash % DELAY_SITES;
    hash = scrambled(hash ^ soft_delay_seed * 0x9e3779b1);
    if (hash & 3 || soft_delay_left_out[site / 32] >> site % 32 & 1) return;
    // Below 64, 256, 1024 or 4096 ns.
    const u32 nanoseconds = hash >> 4 & ((64u << (hash >> 2 & 3) * 2) - 1);
    const u32 warp = blockIdx.y << 16 | blockIdx.x << 8 | threadIdx.x / 32;
    soft_delay_slept[site] = {place, operand, warp, nanoseconds};
    __nanosleep(nanoseconds);
}

__device__ __forceinline__ void delay(u32 place, u32 operand) {
    if (soft_delay_seed != 0) sleep_at(place, operand);
}
#else
__device__ __forceinline__ void delay(u32, u32) {}
#endif
