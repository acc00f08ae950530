// tmem_words: eight words of each lane, to and from TMEM.
//
// Lane t of the warp has cells (t, column) to (t, column + 7); `taddr` names the warp's lanes.
#pragma once
#include "../hardware/tmem.cuh"

#ifdef ATTEST_SOFT
__device__ __forceinline__ void tmem_st8(u32 taddr, const u32 (&v)[8]) {
    for (u32 j = 0; j < 8; ++j) tmem_write(tmem_cell(taddr, lane_index()), j, v[j]);
}

__device__ __forceinline__ void tmem_ld8(u32 taddr, u32 (&v)[8]) {
    for (u32 j = 0; j < 8; ++j) v[j] = tmem_read(tmem_cell(taddr, lane_index()), j);
}
#else
__device__ __forceinline__ void tmem_st8(u32 taddr, const u32 (&v)[8]) {
    asm volatile(
        "tcgen05.st.sync.aligned.32x32b.x8.b32 [%8], {%0, %1, %2, %3, %4, %5, %6, %7};\n\t"
        "tcgen05.wait::st.sync.aligned;" ::"r"(v[0]),
        "r"(v[1]), "r"(v[2]), "r"(v[3]), "r"(v[4]), "r"(v[5]), "r"(v[6]), "r"(v[7]), "r"(taddr)
        : "memory");
}

__device__ __forceinline__ void tmem_ld8(u32 taddr, u32 (&v)[8]) {
    asm volatile(
        "tcgen05.ld.sync.aligned.32x32b.x8.b32 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8];\n\t"
        "tcgen05.wait::ld.sync.aligned;"
        : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3]), "=r"(v[4]), "=r"(v[5]), "=r"(v[6]),
          "=r"(v[7])
        : "r"(taddr)
        : "memory");
}
#endif
