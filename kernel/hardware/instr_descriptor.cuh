// instr_descriptor: the 32-bit word that tells an MMA its shape and types.
//
//   bits  7-9    type of A: 1 = E2M1          bit  23      scales: 0 UE4M3, 1 UE8M0
//   bits 10-11   type of B: 1 = E2M1          bits 27-28   M >> 7
//   bits 17-22   N >> 3                       the rest     0: ids, negation, K = 64
#pragma once
#include "sm.cuh"

__device__ __forceinline__ constexpr u32 instr_descriptor_encode(u32 m, u32 n, u32 scale_type) {
    return 1u << 7 | 1u << 10 | n >> 3 << 17 | scale_type << 23 | m >> 7 << 27;
}
