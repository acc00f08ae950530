// banks: one access of a warp to shared memory, repeated by every warp without waiting for it.
#include "probe.cuh"

constexpr u32 UNROLL = 16, LEFT_OUT = 0xFFFFFFFF;

__device__ inline u64 clock_now() {
    u64 cycles;
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(cycles)::"memory");
    return cycles;
}

// Volatile, or the compiler leaves out what it has done before.
template <u32 NBYTES>
__device__ inline u32 load(u32 at) {
    u32 a = 0, b = 0, c = 0, d = 0;
    if (NBYTES == 4) asm volatile("ld.volatile.shared.b32 %0, [%1];" : "=r"(a) : "r"(at));
    if (NBYTES == 8)
        asm volatile("ld.volatile.shared.v2.b32 {%0, %1}, [%2];" : "=r"(a), "=r"(b) : "r"(at));
    if (NBYTES == 16)
        asm volatile("ld.volatile.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(a), "=r"(b), "=r"(c), "=r"(d)
                     : "r"(at));
    return a ^ b ^ c ^ d;
}

template <u32 NBYTES>
__device__ inline void store(u32 at, u32 value) {
    if (NBYTES == 4) asm volatile("st.volatile.shared.b32 [%0], %1;" ::"r"(at), "r"(value));
    if (NBYTES == 8)
        asm volatile("st.volatile.shared.v2.b32 [%0], {%1, %1};" ::"r"(at), "r"(value));
    if (NBYTES == 16)
        asm volatile("st.volatile.shared.v4.b32 [%0], {%1, %1, %1, %1};" ::"r"(at), "r"(value));
}

// `offsets`: of each lane from the start of shared memory. The first lane that takes part
// writes when its warp began and ended.
template <bool STORES, u32 NBYTES>
__device__ inline void repeat(u64* out, const u32* offsets, u32 loops) {
    const u32 offset = offsets[lane_id()];
    const bool takes_part = offset != LEFT_OUT;
    const u32 first = __ffs(__ballot_sync(0xFFFFFFFF, takes_part)) - 1;
    __syncthreads();
    if (!takes_part) return;
    const u32 at = dynamic_base() + offset;
    u32 seen = 0;
    const u64 start = clock_now();
#pragma unroll 1
    for (u32 i = 0; i < loops; ++i)
#pragma unroll
        for (u32 j = 0; j < UNROLL; ++j)
            if (STORES)
                store<NBYTES>(at, i);
            else
                seen ^= load<NBYTES>(at);
    const u64 end = clock_now() + (seen == LEFT_OUT);  // never: the clock waits for the loads
    u64* const mine = out + threadIdx.x / 32 * 2;
    if (lane_id() == first) {
        mine[0] = start;
        mine[1] = end;
    }
}

#define ENTRIES(NBYTES)                                                                          \
    extern "C" __global__ void load_##NBYTES(u64* out, const u32* offsets, u32 loops) {          \
        repeat<false, NBYTES>(out, offsets, loops);                                              \
    }                                                                                            \
    extern "C" __global__ void store_##NBYTES(u64* out, const u32* offsets, u32 loops) {         \
        repeat<true, NBYTES>(out, offsets, loops);                                               \
    }
ENTRIES(4)
ENTRIES(8)
ENTRIES(16)
