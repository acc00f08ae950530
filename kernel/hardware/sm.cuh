// sm: one streaming multiprocessor, the CTA that lives on it, and the CTA's warps.
//
// Silicon steps the warps; what is left for the kernel is to know its lane and its warp. A
// wrapper of this folder is called by a whole warp. An instruction that one thread must issue
// has the elect inside, or takes the lane that elect_sync chose before as its first argument.
#pragma once

using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;

struct u32x4 {
    u32 x, y, z, w;
};

__device__ __forceinline__ u32 lane_index() {
    u32 lane;
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    return lane;
}

// Equal in all lanes, and the compiler may know it: the shuffle makes the value uniform.
__device__ __forceinline__ u32 warp_index() {
    return __shfl_sync(0xffffffff, threadIdx.x / 32, 0);
}

// What the lanes have written to memory is visible to each other.
__device__ __forceinline__ void warp_sync() { __syncwarp(); }

// The largest value of all lanes.
__device__ __forceinline__ u32 warp_max(u32 value) { return __reduce_max_sync(~0u, value); }

// The value of the lane whose number differs in the bits of `mask`.
__device__ __forceinline__ float warp_xor(float value, u32 mask) {
    return __shfl_xor_sync(~0u, value, mask);
}

// True in one lane of the warp, the lowest.
__device__ __forceinline__ bool elect_sync() {
    u32 elected;
    asm volatile(
        "{\n\t"
        ".reg .pred p;\n\t"
        "elect.sync _|p, 0xffffffff;\n\t"
        "selp.b32 %0, 1, 0, p;\n\t"
        "}"
        : "=r"(elected));
    return elected != 0;
}
