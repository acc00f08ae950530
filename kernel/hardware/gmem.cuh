// gmem: global memory with named allocations.
//
// What the kernel reads and writes without TMA: the bias, the scales of D, and what the nodes of
// a formula load, store and reduce.
#pragma once
#include "sm.cuh"

// A float32 where `inside`, else +0 and no access.
__device__ __forceinline__ float gmem_ld(const float* address, bool inside) {
    float value;
    asm volatile(
        "{\n\t"
        ".reg .pred p;\n\t"
        "setp.ne.b32 p, %2, 0;\n\t"
        "mov.f32 %0, 0f00000000;\n\t"
        "@p ld.global.f32 %0, [%1];\n\t"
        "}"
        : "=f"(value)
        : "l"(address), "r"(static_cast<u32>(inside))
        : "memory");
    return value;
}

__device__ __forceinline__ void gmem_st(u64 address, u16 data) {
    asm volatile("st.global.b16 [%0], %1;" ::"l"(address), "h"(data) : "memory");
}

// Sixteen bytes of each thread.
__device__ __forceinline__ void gmem_ld_each(u64 address, float (&data)[4]) {
    asm volatile("ld.global.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(data[0]), "=f"(data[1]), "=f"(data[2]), "=f"(data[3])
                 : "l"(address)
                 : "memory");
}

__device__ __forceinline__ void gmem_st(u64 address, const float* data) {
    asm volatile("st.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(address), "f"(data[0]),
                 "f"(data[1]), "f"(data[2]), "f"(data[3])
                 : "memory");
}

__device__ __forceinline__ void gmem_st(u64 address, u32 data) {
    asm volatile("st.global.b32 [%0], %1;" ::"l"(address), "r"(data) : "memory");
}

__device__ __forceinline__ void gmem_st(u64 address, u32x4 data) {
    asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(address), "r"(data.x),
                 "r"(data.y), "r"(data.z), "r"(data.w)
                 : "memory");
}

__device__ __forceinline__ void gmem_ld_each(u64 address, u32 (&data)[4]) {
    asm volatile("ld.global.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(data[0]), "=r"(data[1]), "=r"(data[2]), "=r"(data[3])
                 : "l"(address)
                 : "memory");
}

__device__ __forceinline__ void gmem_ld_each(u64 address, u32& data) {
    asm volatile("ld.global.b32 %0, [%1];" : "=r"(data) : "l"(address) : "memory");
}

__device__ __forceinline__ void gmem_ld_each(u64 address, u16& data) {
    asm volatile("ld.global.b16 %0, [%1];" : "=h"(data) : "l"(address) : "memory");
}

// Make the word at `address` the larger one of itself and `value`.
__device__ __forceinline__ void gmem_red_max(u64 address, u32 value) {
    asm volatile("red.relaxed.gpu.global.max.u32 [%0], %1;" ::"l"(address), "r"(value)
                 : "memory");
}

// Load the word at `address` until it is `value`. What the releases of this value came after is
// ordered before what the thread does next.
__device__ __forceinline__ void gmem_wait_eq(u64 address, u32 value) {
    u32 now;
    do {
        asm volatile("ld.acquire.gpu.global.b32 %0, [%1];"
                     : "=r"(now)
                     : "l"(address)
                     : "memory");
    } while (now != value);
}

// Add `value` to the word at `address`. Whoever acquires the sum comes after all that this
// thread has done and seen.
__device__ __forceinline__ void gmem_red_release(u64 address, u32 value) {
    asm volatile("red.release.gpu.global.add.u32 [%0], %1;" ::"l"(address), "r"(value)
                 : "memory");
}
