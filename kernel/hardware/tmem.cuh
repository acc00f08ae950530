// Part 4. tmem: 128 lanes x 512 columns of 32 bits, and how warps reach them.
//
// An address is lane << 16 | column. Warp w reaches lanes 32 * (w % 4) to 32 * (w % 4) + 31.
#pragma once
#include "sm.cuh"

constexpr u32 TMEM_COLUMNS = 512;

__device__ __forceinline__ constexpr u32 tmem_address(u32 lane, u32 column) {
    return lane << 16 | column;
}

// The whole warp, of a pair one in each CTA. The TMEM address is written to shared memory.
// Frame 4.2.
template <u32 CTA_GROUP>
__device__ __forceinline__ void tmem_alloc(u32 destination, u32 columns) {
    asm volatile("tcgen05.alloc.cta_group::%2.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(
                     destination),
                 "r"(columns), "n"(CTA_GROUP)
                 : "memory");
}

template <u32 CTA_GROUP>
__device__ __forceinline__ void tmem_dealloc(u32 taddr, u32 columns) {
    asm volatile("tcgen05.dealloc.cta_group::%2.sync.aligned.b32 %0, %1;" ::"r"(taddr),
                 "r"(columns), "n"(CTA_GROUP)
                 : "memory");
}

template <u32 CTA_GROUP>
__device__ __forceinline__ void tmem_relinquish_alloc_permit() {
    asm volatile("tcgen05.relinquish_alloc_permit.cta_group::%0.sync.aligned;" ::"n"(CTA_GROUP)
                 : "memory");
}

// 32 columns of the warp's lanes: register j of lane t is cell (t, column + j). Frame 4.5.
__device__ __forceinline__ void tmem_ld(u32 taddr, float (&r)[32]) {
    asm volatile(
        "tcgen05.ld.sync.aligned.32x32b.x32.b32 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, "
        "%8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, "
        "%24, %25, %26, %27, %28, %29, %30, %31}, [%32];"
        : "=f"(r[0]), "=f"(r[1]), "=f"(r[2]), "=f"(r[3]), "=f"(r[4]), "=f"(r[5]), "=f"(r[6]),
          "=f"(r[7]), "=f"(r[8]), "=f"(r[9]), "=f"(r[10]), "=f"(r[11]), "=f"(r[12]), "=f"(r[13]),
          "=f"(r[14]), "=f"(r[15]), "=f"(r[16]), "=f"(r[17]), "=f"(r[18]), "=f"(r[19]),
          "=f"(r[20]), "=f"(r[21]), "=f"(r[22]), "=f"(r[23]), "=f"(r[24]), "=f"(r[25]),
          "=f"(r[26]), "=f"(r[27]), "=f"(r[28]), "=f"(r[29]), "=f"(r[30]), "=f"(r[31])
        : "r"(taddr)
        : "memory");
}

// 32 columns of 16 lanes: registers 2 i and 2 i + 1 are a pair of elements. Frame 4.5.
__device__ __forceinline__ void tmem_ld_16x256b(u32 taddr, float* r) {
    asm volatile(
        "tcgen05.ld.sync.aligned.16x256b.x4.b32 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, "
        "%8, %9, %10, %11, %12, %13, %14, %15}, [%16];"
        : "=f"(r[0]), "=f"(r[1]), "=f"(r[2]), "=f"(r[3]), "=f"(r[4]), "=f"(r[5]), "=f"(r[6]),
          "=f"(r[7]), "=f"(r[8]), "=f"(r[9]), "=f"(r[10]), "=f"(r[11]), "=f"(r[12]), "=f"(r[13]),
          "=f"(r[14]), "=f"(r[15])
        : "r"(taddr)
        : "memory");
}

// The registers of a load are its own only after this: they pass through it.
__device__ __forceinline__ void tmem_wait_ld(float (&r)[32]) {
    asm volatile("tcgen05.wait::ld.sync.aligned;"
                 : "+f"(r[0]), "+f"(r[1]), "+f"(r[2]), "+f"(r[3]), "+f"(r[4]), "+f"(r[5]),
                   "+f"(r[6]), "+f"(r[7]), "+f"(r[8]), "+f"(r[9]), "+f"(r[10]), "+f"(r[11]),
                   "+f"(r[12]), "+f"(r[13]), "+f"(r[14]), "+f"(r[15]), "+f"(r[16]), "+f"(r[17]),
                   "+f"(r[18]), "+f"(r[19]), "+f"(r[20]), "+f"(r[21]), "+f"(r[22]), "+f"(r[23]),
                   "+f"(r[24]), "+f"(r[25]), "+f"(r[26]), "+f"(r[27]), "+f"(r[28]), "+f"(r[29]),
                   "+f"(r[30]), "+f"(r[31])
                 :
                 : "memory");
}
