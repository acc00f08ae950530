// flip: one bit of shared memory changes before the unit's nth operation, as the host asks.
#pragma once
#include "../hardware/smem.cuh"

#ifdef SOFT_FLIP
__device__ u32 soft_flip[3];  // the operation, the address of a word, and its bits that change

__device__ __forceinline__ void flip(u32 operation) {
    if (operation != soft_flip[0] || lane_index() != 0) return;
    const u32 word = smem_ld(soft_flip[1]) ^ soft_flip[2];
    asm volatile("st.shared.b32 [%0], %1;" ::"r"(soft_flip[1]), "r"(word) : "memory");
}
#else
__device__ __forceinline__ void flip(u32) {}
#endif
