// all_inputs: kernels over many or all 32-bit patterns of a function of one float.
#pragma once
#include "probe.cuh"

#define SAMPLES(NAME)                                                                          \
    extern "C" __global__ void sample_##NAME(const float* in, u32* out, u32 n) {               \
        for (u32 i = threadIdx.x; i < n; i += 32) out[i] = NAME(in[i]);                        \
    }

// Where a function of the 32-bit pattern changes: (pattern, new value), in any order. With
// value 0 before pattern 0 this holds the function for all 2^32 inputs.
#define EVERY_CHANGE(NAME)                                                                     \
    extern "C" __global__ void changes_##NAME(u32* count, u32* out, u32 room, u32 first,       \
                                              u32 per_thread) {                                \
        u32 thread = blockIdx.x * blockDim.x + threadIdx.x;                                    \
        u32 start = first + thread * per_thread;                                               \
        u32 before = start ? NAME(__uint_as_float(start - 1)) : 0;                             \
        for (u32 i = 0; i < per_thread; ++i) {                                                 \
            u32 now = NAME(__uint_as_float(start + i));                                        \
            if (now != before) {                                                               \
                u32 at = atomicAdd(count, 1u);                                                 \
                if (at < room) {                                                               \
                    out[2 * at] = start + i;                                                   \
                    out[2 * at + 1] = now;                                                     \
                }                                                                              \
            }                                                                                  \
            before = now;                                                                      \
        }                                                                                      \
    }

// One 64-bit sum per block of 2^20 patterns: of result * (2 * place + 1).
#define CHECKSUM(NAME)                                                                         \
    extern "C" __global__ void checksum_##NAME(u64* sums, u32 first) {                         \
        u32 block = first + blockIdx.x;                                                        \
        u64 sum = 0;                                                                           \
        for (u32 i = threadIdx.x; i < (1u << 20); i += blockDim.x)                             \
            sum += (u64)NAME(__uint_as_float(block << 20 | i)) * (2ull * i + 1);               \
        atomicAdd(sums + blockIdx.x, sum);                                                     \
    }

#define TABLE(NAME)                                                                            \
    extern "C" __global__ void table_##NAME(u32* out, u32 first) {                             \
        u32 i = blockIdx.x * blockDim.x + threadIdx.x;                                         \
        out[i] = NAME(__uint_as_float(first + i));                                             \
    }
