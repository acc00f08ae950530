// instr_descriptor: the 32-bit word that tells an MMA its shape and types.
//
// Of the block-scaled kinds:
//   bits  7-9    type of A                    bit  23      scales: 0 UE4M3, 1 UE8M0
//   bits 10-12   type of B                    bits 27-28   M >> 7
//   bits 17-22   N >> 3                       the rest     0: ids, negation, K = 64
// Of those without scales:
//   bits  4-5    type of D: 1 = F32           bits 24-28   M >> 4
#pragma once
#include "sm.cuh"

__device__ __forceinline__ constexpr u32 instr_descriptor_encode(u32 m, u32 n, u32 a_type,
                                                                 u32 b_type, u32 scale_type) {
    return a_type << 7 | b_type << 10 | n >> 3 << 17 | scale_type << 23 | m >> 7 << 27;
}

__device__ __forceinline__ constexpr u32 instr_descriptor_encode_unscaled(u32 m, u32 n,
                                                                          u32 a_type,
                                                                          u32 b_type) {
    return 1u << 4 | a_type << 7 | b_type << 10 | n >> 3 << 17 | m >> 4 << 24;
}
