// tma: the copies of sm_90, which credit bytes in the CTA that receives them.
//
// A pair's leader hears of its peer's bytes by the relay.
#pragma once
#define tma_load_multicast own_load_multicast
#include "../hardware/tma.cuh"
#undef tma_load_multicast

// The place of a leader's barrier in the CTA that issues.
template <u32 CTA_GROUP>
__device__ __forceinline__ u32 own_barrier(u32 mbar, u32 dst) {
    return CTA_GROUP == 1 ? mbar : mbar & 0xffffff | dst & 0xff000000;
}

template <u32 CTA_GROUP>
__device__ __forceinline__ void tma_load_multicast(bool elected, const TensorMap& map, u32 x,
                                                   u32 y, u32 z, u32 dst, u32 mbar,
                                                   u16 cta_mask) {
    own_load_multicast<1>(elected, map, x, y, z, dst, own_barrier<CTA_GROUP>(mbar, dst),
                          cta_mask);
}

template <u32 CTA_GROUP>
__device__ __forceinline__ void tma_load_multicast(bool elected, const TensorMap& map, u32 x,
                                                   u32 y, u32 z, u32 w, u32 dst, u32 mbar,
                                                   u16 cta_mask) {
    own_load_multicast<1>(elected, map, x, y, z, w, dst, own_barrier<CTA_GROUP>(mbar, dst),
                          cta_mask);
}
