// Parts 1 to 8. roles: what each warp of a CTA runs.
//
// Written by fp4ref.cuda_kernel.choices from fp4ref.gemm.roles. These are
// the choices of GemmConfig(); those of what is compiled take their place.
#pragma once
#include "epilogue_warp.cuh"
#include "idle_warp.cuh"
#include "mma_warp.cuh"
#include "producer_warp.cuh"
#include "scheduler_warp.cuh"

__device__ __forceinline__ void start(u32 warp, const SharedStorage& storage) {
    switch (warp) {
        case MMA: mma_warp(storage); break;
        case SCHEDULER: scheduler_warp(storage); break;
        case MAINLOOP_LOAD: producer_warp(storage); break;
        case EPILOGUE_LOAD: idle_warp(storage); break;
        default: epilogue_warp(storage); break;  // EPILOGUE
    }
}
