// Part 7. collective: one accumulator becomes one tile of D.
//
// The order of CUTLASS's collective epilogue: for each subtile load, visit the formula, store.
// The accumulator is released right after the last load from it, before the last subtile is
// stored.
#pragma once
#include "../../hardware/tcgen05.cuh"
#include "../../hardware/tmem.cuh"
#include "tile_writer.cuh"

// Read 32 rows x 32 columns of TMEM. Frames 4.5 and 7.5.
__device__ __forceinline__ void load_accumulator(const Epilogue& e, Stage accumulator,
                                                 u32 subtile, Subtile& acc) {
    const u32 column = accumulator.index * TILE_N + subtile * SUBTILE_N;
    tmem_ld(e.taddr + tmem_address(e.lane, column), acc);
    tmem_wait_ld(acc);
}

// The formula of every element; `z` comes in as the accumulator. Frame 7.6.
//
// What lies outside D becomes +0, so that it cannot reach a block scale.
__device__ __forceinline__ void fuse(const Epilogue& e, const Fusion& fusion, WorkTile work,
                                     u32 subtile, Subtile& z) {
    const GemmParams& params = e.storage.params;
    const u32 first = work.n * TILE_N + subtile * SUBTILE_N;
    const u32 columns = params.n > first ? params.n - first : 0;
    const u32 inside = work.m * TILE_M + e.row < params.m ? columns : 0;
#pragma unroll
    for (u32 j = 0; j < SUBTILE_N; ++j) {
        const float x = fusion.visit({params, z[j], j});
        z[j] = j < inside ? x : 0.0f;
    }
}

// Turn one accumulator into D. Frames 7.2 to 7.10.
__device__ __forceinline__ void finish_tile(Epilogue& e, WorkTile work) {
    const Stage accumulator = e.accumulator.wait();  // 7.4
    tcgen05_fence_after_thread_sync();
    Fixup::wait(e, work);
#pragma unroll 1
    for (u32 subtile = 0; subtile < SUBTILES; ++subtile) {
        Subtile z;
        load_accumulator(e, accumulator, subtile, z);
        if (subtile == SUBTILES - 1) {  // 7.10
            tcgen05_fence_before_thread_sync();
            arrive_on_empty(accumulator);
        }
        Fixup::load_add(e, work, subtile, z);
        Fusion fusion;
        fusion.previsit(e, work, subtile);
        fuse(e, fusion, work, subtile, z);
        store_subtile(e, work, subtile, z);
    }
}
