// bf16x2: arithmetic of BF16, two numbers of a word at a time.
#pragma once
#include "../hardware/sm.cuh"

__device__ __forceinline__ u32 add_bf16x2(u32 a, u32 b) {
    u32 sum;
    asm("add.rn.bf16x2 %0, %1, %2;" : "=r"(sum) : "r"(a), "r"(b));
    return sum;
}
