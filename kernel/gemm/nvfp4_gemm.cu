// nvfp4_gemm: set up one CTA and start its warps, each in its role.
//
// Warp 0 issues MMAs, 1 schedules tiles, 2 loads A and B with their scales, 3 loads C, and 4
// to 7 are the epilogue: CUTLASS's roles. 256 threads. The grid is the tile
// grid (CLC), or as many CTAs as there are SMs (static).
#include "roles.cuh"

extern "C" __global__ void __launch_bounds__(CTA_THREADS, 1)
    nvfp4_gemm(const __grid_constant__ GemmParams params) {
    const SharedStorage storage = {{smem_base()}, params};
    const u32 base = IN_CLUSTER ? storage.base & 0xffffff : storage.base;
    if (base != smem_map::BASE) __trap();  // DESCRIPTORS would name other bytes
    start(warp_index(), storage);
}
