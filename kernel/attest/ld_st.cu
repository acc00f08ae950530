// ld_st: every shape of tcgen05.ld and st with four registers, against the shape 32x32b.
//
// For each shape what it loads of a pattern: warp, lane, register. Then what it stores, seen by
// 32x32b in 16 columns. The shapes of 16 lanes do so in the upper half of the warp's lanes.
#include "rung.cuh"

constexpr u32 CELLS = 16;  // columns that a shape may touch

#define LD(shape, taddr, split)                                                          \
    asm volatile("tcgen05.ld.sync.aligned." shape ".b32 {%0, %1, %2, %3}, [%4]" split ";" \
                 "tcgen05.wait::ld.sync.aligned;"                                         \
                 : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3])                         \
                 : "r"(taddr)                                                             \
                 : "memory")
#define ST(shape, taddr, split)                                                          \
    asm volatile("tcgen05.st.sync.aligned." shape ".b32 [%4]" split ", {%0, %1, %2, %3};" \
                 "tcgen05.wait::st.sync.aligned;" ::"r"(v[0]),                            \
                 "r"(v[1]), "r"(v[2]), "r"(v[3]), "r"(taddr)                              \
                 : "memory")

__device__ __forceinline__ u32 pattern(u32 lane, u32 column) {
    return 0xA5000000 | lane << 8 | column;
}

__device__ __forceinline__ void fill(u32 tmem) {
    u32 eight[8];
    for (u32 half = 0; half < 2; ++half) {
        for (u32 j = 0; j < 8; ++j) eight[j] = pattern(threadIdx.x, half * 8 + j);
        tmem_st8(tmem + own_lanes() + half * 8, eight);
    }
}

__device__ __forceinline__ void show(u32 tmem, u32* out) {
    u32 eight[8];
    for (u32 half = 0; half < 2; ++half) {
        tmem_ld8(tmem + own_lanes() + half * 8, eight);
        for (u32 j = 0; j < 8; ++j) out[threadIdx.x * CELLS + half * 8 + j] = eight[j];
    }
}

// What follows the 4 * THREADS words of the load are the CELLS * THREADS of the store.
#define SHAPE(number, shape, lane, split)                                              \
    {                                                                                  \
        u32* to = out + number * (4 + CELLS) * THREADS;                                \
        const u32 at = tmem + own_lanes() + tmem_address(lane, 0);                     \
        fill(tmem);                                                                    \
        LD(shape, at, split);                                                          \
        for (u32 j = 0; j < 4; ++j) to[threadIdx.x * 4 + j] = v[j];                    \
        for (u32 j = 0; j < 4; ++j) v[j] = 0xC3000000 | threadIdx.x << 8 | j;          \
        ST(shape, at, split);                                                          \
        show(tmem, to + 4 * THREADS);                                                  \
    }

extern "C" __global__ void ld_st(u32* out) {
    if (begins_as_unit()) return;
    const u32 tmem = smem_ld(tmem_pointer());
    u32 v[4];
    SHAPE(0, "32x32b.x4", 0, "")
    SHAPE(1, "16x64b.x4", 16, "")
    SHAPE(2, "16x128b.x2", 16, "")
    SHAPE(3, "16x256b.x1", 16, "")
    SHAPE(4, "16x32bx2.x4", 16, ", 8")
    end();
}
