// doubles: approximations of float64. With .ftz they read the upper word and write it.
#include "probe.cuh"

#define ONE_SOURCE(NAME, OPCODE)                                                               \
    __device__ __forceinline__ u64 NAME(u64 bits) {                                            \
        double x = __longlong_as_double((long long)bits), found;                               \
        asm volatile(OPCODE " %0, %1;" : "=d"(found) : "d"(x));                                \
        return (u64)__double_as_longlong(found);                                               \
    }

ONE_SOURCE(rcp, "rcp.approx.ftz.f64")
ONE_SOURCE(rsqrt_ftz, "rsqrt.approx.ftz.f64")
ONE_SOURCE(rsqrt_all, "rsqrt.approx.f64")

// splitmix64 of a number, as probe.pattern has it.
__device__ __forceinline__ u64 mixed(u64 number) {
    u64 x = (number + 1) * 0x9E3779B97F4A7C15ull;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ x >> 27) * 0x94D049BB133111EBull;
    return x ^ x >> 31;
}

// Upper words of the results for consecutive upper words, lower words 0.
#define TABLE(NAME)                                                                            \
    extern "C" __global__ void table_##NAME(u32* out, u32 first) {                             \
        u32 i = blockIdx.x * blockDim.x + threadIdx.x;                                         \
        out[i] = (u32)(NAME((u64)(first + i) << 32) >> 32);                                    \
    }

// For each block of 2^20 upper words: the sum of upper result * (2 * place + 1), how many
// results have a lower word that is not 0, and how many change with the lower word.
#define SUMS(NAME)                                                                             \
    extern "C" __global__ void sums_##NAME(u64* sums, u32* low, u32* changed, u32 first) {     \
        u32 block = first + blockIdx.x, lows = 0, changes = 0;                                 \
        u64 sum = 0;                                                                           \
        for (u32 i = threadIdx.x; i < (1u << 20); i += blockDim.x) {                           \
            u64 high = (u64)(block << 20 | i) << 32, found = NAME(high);                       \
            sum += (found >> 32) * (2ull * i + 1);                                             \
            lows += (u32)found != 0;                                                           \
            changes += NAME(high | (u32)mixed(high)) != found;                                 \
        }                                                                                      \
        atomicAdd(sums + blockIdx.x, sum);                                                     \
        atomicAdd(low + blockIdx.x, lows);                                                     \
        atomicAdd(changed + blockIdx.x, changes);                                              \
    }

#define SAMPLES(NAME)                                                                          \
    extern "C" __global__ void samples_##NAME(const u64* in, u64* out, u32 n) {                \
        for (u32 i = threadIdx.x; i < n; i += blockDim.x) out[i] = NAME(in[i]);                \
    }

TABLE(rcp)
TABLE(rsqrt_ftz)
SUMS(rcp)
SUMS(rsqrt_ftz)
SAMPLES(rcp)
SAMPLES(rsqrt_ftz)
SAMPLES(rsqrt_all)

// Whole results of 2^20 random patterns for each block, upper and lower word.
extern "C" __global__ void sums_rsqrt_all(u64* sums, u32 first) {
    u32 block = first + blockIdx.x;
    u64 sum = 0;
    for (u32 i = threadIdx.x; i < (1u << 20); i += blockDim.x)
        sum += rsqrt_all(mixed((u64)block << 20 | i)) * (2ull * i + 1);
    atomicAdd(sums + blockIdx.x, sum);
}
