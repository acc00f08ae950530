// vec2: accesses of two words a thread, ``.v2.b32``: a warp has 256 bytes of a row.
#pragma once
#include "sm.cuh"

struct u32x2 {
    u32 x, y;
};

__device__ __forceinline__ u32x2 vec2_ld_shared(u32 address) {
    u32x2 v;
    asm volatile("ld.shared.v2.b32 {%0, %1}, [%2];"
                 : "=r"(v.x), "=r"(v.y)
                 : "r"(address)
                 : "memory");
    return v;
}

__device__ __forceinline__ void vec2_st_global(u64 address, u32x2 v) {
    asm volatile("st.global.v2.b32 [%0], {%1, %2};" ::"l"(address), "r"(v.x), "r"(v.y)
                 : "memory");
}
