// cta: the elected lane, thread counts of bar.sync, and where dynamic shared memory starts.
#include "probe.cuh"

// For each mask its lanes elect; a lane shows 0x100 if it is elected, and the lane it was told.
extern "C" __global__ void elect(const u32* masks, u32* out, u32 n) {
    for (u32 i = 0; i < n; ++i) {
        u32 mask = masks[i], shown = 0xFFFFFFFF;
        if (mask >> lane_id() & 1) {
            u32 lane, elected;
            asm volatile(
                "{ .reg .pred p;\n"
                "  elect.sync %0|p, %2;\n"
                "  selp.u32 %1, 1, 0, p; }"
                : "=r"(lane), "=r"(elected)
                : "r"(mask));
            shown = elected << 8 | lane;
        }
        __syncwarp();
        out[32 * i + lane_id()] = shown;
    }
}

// Warps 0-1 produce and only arrive, warps 2-3 consume; the count is in threads: 128.
extern "C" __global__ void named_barriers(u32* out, u32 rounds) {
    u32 slots = dynamic_base(), warp = threadIdx.x / 32;
    for (u32 r = 0; r < rounds; ++r) {
        if (warp < 2) {
            st_shared(slots + 4 * threadIdx.x, r << 16 | threadIdx.x);
            asm volatile("bar.arrive 1, 128;" ::: "memory");
            asm volatile("bar.sync 2, 128;" ::: "memory");
        } else {
            asm volatile("bar.sync 1, 128;" ::: "memory");
            out[64 * r + threadIdx.x - 64] = ld_shared(slots + 4 * (threadIdx.x - 64));
            asm volatile("bar.arrive 2, 128;" ::: "memory");
        }
    }
}

extern "C" __global__ void base_alone(u32* out) { out[0] = dynamic_base(); }

#define BASE_BESIDE(NBYTES)                                                                    \
    extern "C" __global__ void base_beside_##NBYTES(u32* out) {                                \
        __shared__ u8 fixed[NBYTES];                                                           \
        volatile u8* use = fixed;                                                              \
        use[0] = 1;                                                                            \
        out[0] = dynamic_base();                                                               \
        out[1] = shared_address(fixed);                                                        \
    }
BASE_BESIDE(8)
BASE_BESIDE(1000)
BASE_BESIDE(1040)

// Dynamic shared memory that asks for an alignment, after 8 static bytes.
#define BASE_ALIGNED(ALIGNMENT)                                                                \
    extern "C" __global__ void base_aligned_##ALIGNMENT(u32* out) {                            \
        extern __shared__ __align__(ALIGNMENT) u8 aligned_##ALIGNMENT[];                       \
        __shared__ u8 fixed[8];                                                                \
        volatile u8* use = fixed;                                                              \
        use[0] = 1;                                                                            \
        out[0] = shared_address(aligned_##ALIGNMENT);                                          \
        out[1] = shared_address(fixed);                                                        \
    }
BASE_ALIGNED(4)
BASE_ALIGNED(128)
BASE_ALIGNED(1024)
