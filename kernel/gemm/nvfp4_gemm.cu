// nvfp4_gemm: set up one CTA, start its eight warps, and launch the problem.
//
// Warp 0 issues MMAs, 1 schedules tiles, 2 loads A and B with their scales, 3 loads C, and 4
// to 7 are the epilogue: CUTLASS's roles. 256 threads, cluster 1x1x1. The grid is the tile
// grid (CLC), or as many CTAs as there are SMs (static).
#include "config.cuh"
#include "epilogue_load_warp.cuh"
#include "epilogue_warp.cuh"
#include "mma_warp.cuh"
#include "producer_warp.cuh"
#include "shared_storage.cuh"

// Warp 1: ask for tiles, if the scheduler is CLC.
__device__ __forceinline__ void scheduler(const SharedStorage& storage) {
    init_barriers(storage);
    if constexpr (SCHEDULER_IS_CLC)
        scheduler_warp(storage.tile_scheduler(), {storage.throttle()}, {storage.clc()},
                       storage.base);
}

extern "C" __global__ void __launch_bounds__(CTA_THREADS, 1)
    nvfp4_gemm(const __grid_constant__ GemmParams params) {
    const SharedStorage storage = {{smem_base()}, params};
    if (storage.base != smem_map::BASE) __trap();  // DESCRIPTORS would name other bytes
    switch (warp_index()) {
        case MMA: mma_warp(storage); break;
        case SCHEDULER: scheduler(storage); break;
        case MAINLOOP_LOAD: producer_warp(storage); break;
        case EPILOGUE_LOAD: epilogue_load_warp(storage); break;
        default: epilogue_warp(storage); break;
    }
}
