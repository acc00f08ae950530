// Part 1. smem: the byte array of one CTA, and the descriptor that names a tile in it.
//
// Ordinary loads and stores go through the generic proxy, TMA and tcgen05 through the async
// proxy; between a store and an async access stands fence.proxy.async.
#pragma once
#include "sm.cuh"

// Shared address of the CTA's dynamic shared memory. It starts on 1024 bytes (0x400).
__device__ __forceinline__ u32 smem_base() {
    extern __shared__ __align__(1024) u8 dynamic_shared_memory[];
    return static_cast<u32>(__cvta_generic_to_shared(dynamic_shared_memory));
}

__device__ __forceinline__ void smem_st(u32 address, u32x4 v) {
    asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(v.x), "r"(v.y),
                 "r"(v.z), "r"(v.w)
                 : "memory");
}

__device__ __forceinline__ void smem_st(u32 address, const float* v) {
    asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(address), "f"(v[0]), "f"(v[1]),
                 "f"(v[2]), "f"(v[3])
                 : "memory");
}

// Four matrices of 8 x 8 elements of 16 bits; each lane has the address of a row.
__device__ __forceinline__ void smem_stmatrix(u32 address, u32x4 v) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address),
                 "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w)
                 : "memory");
}

__device__ __forceinline__ u32 smem_ld(u32 address) {
    u32 word;
    asm volatile("ld.shared.b32 %0, [%1];" : "=r"(word) : "r"(address) : "memory");
    return word;
}

__device__ __forceinline__ void smem_ld(u32 address, u32x4& v) {
    asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "r"(address)
                 : "memory");
}

__device__ __forceinline__ void smem_ld(u32 address, float* v) {
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(v[0]), "=f"(v[1]), "=f"(v[2]), "=f"(v[3])
                 : "r"(address)
                 : "memory");
}

__device__ __forceinline__ void smem_ld(u32 address, u64& low, u64& high) {
    asm volatile("ld.shared.v2.b64 {%0, %1}, [%2];"
                 : "=l"(low), "=l"(high)
                 : "r"(address)
                 : "memory");
}

__device__ __forceinline__ void smem_fence_proxy_async() {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// The 64-bit matrix descriptor. Frame 6.6.9.
//
//   bits   0-13   start address >> 4
//   bits  16-29   leading-dimension offset >> 4
//   bits  32-45   stride-dimension offset >> 4
//   bits  46-48   1
//   bits  61-63   swizzle: 0 none, 2 = 128 bytes
//
// An offset in 16 bytes may be added: addresses stay below 256 KB, so no field carries.
__device__ __forceinline__ constexpr u64 smem_descriptor(u32 address, u32 leading_nbytes,
                                                         u32 stride_nbytes, u32 swizzle_code) {
    const u32 low = (address & 0x3ffff) >> 4 | leading_nbytes >> 4 << 16;
    const u32 high = stride_nbytes >> 4 | 1u << 14 | swizzle_code << 29;
    return static_cast<u64>(high) << 32 | low;
}
