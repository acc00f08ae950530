// nvfp4_gemm: set up one CTA and start its warps, each in its role.
//
// Warp 0 issues MMAs, 1 schedules tiles, 2 loads A and B with their scales, 3 loads C, and 4
// to 7 are the epilogue: CUTLASS's roles. 256 threads. The grid is the tile
// grid (CLC), or as many CTAs as there are SMs (static).
#include "../hardware/tensor_core.cuh"
#include "roles.cuh"

extern "C" __global__ void __launch_bounds__(CTA_THREADS + TENSOR_CORE_THREADS, 1)
    nvfp4_gemm(const __grid_constant__ GemmParams params) {
    if (!clc_starts()) return;
    const SharedStorage storage = {{smem_base()}, params};
    const u32 base = IN_CLUSTER ? storage.base & 0xffffff : storage.base;
    if (base != smem_map::BASE) __trap();  // DESCRIPTORS would name other bytes
    if constexpr (TENSOR_CORE_THREADS > 0) {
        if (warp_index() >= CTA_THREADS / WARP_THREADS)
            return tensor_core<IN_CLUSTER, CTA_GROUP>();
    }
    start(warp_index(), storage);
}
